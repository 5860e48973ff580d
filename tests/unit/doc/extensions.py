# SPDX-License-Identifier: Apache-2.0
"""Modules of the Sphinx extensions, which are not in a package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

_FOLDER: Final = Path(__file__).parents[3] / 'doc/source/_exts'


def load(name: str) -> ModuleType:
    """Import a module by its name."""
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f'{name}.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look up their module there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module
