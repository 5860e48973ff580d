# SPDX-License-Identifier: Apache-2.0
"""The collection that all tests of this suite use."""

from pathlib import Path

import pytest

from tests.ansible.collection import install_collection


@pytest.fixture(scope='session')
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the built and installed collection."""
    directory = tmp_path_factory.mktemp('collections')
    install_collection(directory)
    return directory
