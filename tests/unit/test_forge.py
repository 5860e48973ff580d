# SPDX-License-Identifier: Apache-2.0
"""The files for a forge and for pre-commit name commands that exist."""

import os
from configparser import RawConfigParser
from typing import Any

import yaml

from tests.support.sources import ROOT


def _load(name: str) -> Any:
    """Return the content of a YAML file at a path below the checkout."""
    return yaml.safe_load((ROOT / name).read_text())


def test_workflow_runs_whole_ci() -> None:
    steps = _load('.github/workflows/ci.yml')['jobs']['run']['steps']
    assert './.ci/run' in [step.get('run') for step in steps]
    assert os.access(ROOT / '.ci' / 'run', os.X_OK)


def test_hooks_run_suites_of_tox() -> None:
    tox = RawConfigParser()
    tox.read(ROOT / 'tox.ini')
    [repository] = _load('.pre-commit-config.yaml')['repos']
    for hook in repository['hooks']:
        command, suite = hook['entry'].split()
        assert os.access(ROOT / command, os.X_OK)
        assert f'testenv:{suite}' in tox
