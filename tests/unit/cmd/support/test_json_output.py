# SPDX-License-Identifier: Apache-2.0
"""Tests of the option ``--json``: every subcommand has it."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cyborg_lite.cmd.dbsync import main
from cyborg_lite.cmd.manage import main as manage
from cyborg_lite.cmd.status import main as status

Out = pytest.CaptureFixture[str]


def list_leaves(
    parser: argparse.ArgumentParser, words: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield all subcommands that do work, with their words."""
    groups = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    if not any(group.required for group in groups):
        yield words, parser
    for group in groups:
        for name, child in group.choices.items():
            yield from list_leaves(child, f'{words} {name}')


@pytest.mark.parametrize(('module', 'minimum'), [(manage, 13), (status, 3), (main, 6)])
def test_every_subcommand_has_option_json(module: Any, minimum: int) -> None:
    root = argparse.ArgumentParser()
    module._add_parsers(root.add_subparsers(required=True))
    leaves = [leaf for leaf in list_leaves(root, '') if leaf[0]]
    assert len(leaves) >= minimum
    lacking = [
        words for words, parser in leaves if '--json' not in parser.format_help()
    ]
    assert lacking == []


def run_json(run: Callable[[], int], capsys: Out) -> tuple[int, Any]:
    exit_status = run()
    return exit_status, json.loads(capsys.readouterr().out)


def test_table_becomes_document(
    write_config: Callable[..., list[str]], capsys: Out
) -> None:
    config = write_config()
    assert run_json(lambda: manage.main([*config, 'ownership', '--json']), capsys) == (
        0,
        [],
    )
    exit_status, document = run_json(
        lambda: status.main([*config, 'show', '--json']), capsys
    )
    assert exit_status == 1
    assert (document['daemons'], document['jobs']) == ([], [])
    assert document['attention'] == []


def test_messages_become_document(
    write_config: Callable[..., list[str]], capsys: Out
) -> None:
    config = write_config()
    arguments = [*config, 'agent', 'forget-identity', 'compute-9', '--json']
    assert run_json(lambda: manage.main(arguments), capsys) == (
        1,
        {
            'exit_status': 1,
            'messages': ['Host compute-9 has no agent with an identity.'],
        },
    )
    # The command configures logging, so it needs a process of its own.
    output = subprocess.run(
        [sys.executable, '-m', main.__name__, *config, 'history', '--json'],
        capture_output=True,
        check=True,
    ).stdout
    assert json.loads(output)['messages'][0].startswith('0001 ')
