# SPDX-License-Identifier: Apache-2.0
"""Setup of all tests: the concurrency backend and the profile of Hypothesis."""

# Import this module first, as every entry point does: it chooses the concurrency
# backend, which libraries detect when they are imported.
from cyborg_lite import runtime  # isort: skip

from hypothesis import settings

__all__ = ['runtime']

# The time of an example depends on the machine more than on the code.
settings.register_profile('untimed', deadline=None)
settings.load_profile('untimed')
