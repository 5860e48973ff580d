# SPDX-License-Identifier: Apache-2.0
"""Setup of all tests: concurrency, umask, garbage collection, Hypothesis, request."""

# Import this module first, as every entry point does: it chooses the concurrency
# backend, which libraries detect when they are imported.
from cyborg_lite import runtime  # isort: skip

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import settings
from oslo_context.context import RequestContext

__all__ = ['runtime']

# The product refuses files that users other than root can write to. Some distributions
# create files in that way for the first user.
os.umask(0o022)

# The time of an example depends on the machine more than on the code.
settings.register_profile('untimed', deadline=None)
settings.load_profile('untimed')


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pause garbage collection during the collection of tests.

    Modules and tests stay until the end. Later passes do not visit them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def new_request_context() -> None:
    """Start each test in the context of a new request.

    A context stays the current one of its thread until the next one is created. Without
    this fixture the result of a test could depend on the request of an earlier test.
    """
    RequestContext()
