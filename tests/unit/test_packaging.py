# SPDX-License-Identifier: Apache-2.0
"""Entry points of the package. ``tests/conformance`` builds and installs the wheel."""

import configparser
import importlib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


def list_entry_points() -> list[str]:
    """Return the targets ``module:name`` of all groups in ``setup.cfg``."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    section = parser['options.entry_points']
    return [
        line.partition('=')[2].strip()
        for group in section.values()
        for line in group.strip().splitlines()
    ]


@pytest.mark.parametrize('target', list_entry_points())
def test_entry_point_target_is_callable(target: str) -> None:
    module, _, name = target.partition(':')
    assert callable(getattr(importlib.import_module(module), name))
