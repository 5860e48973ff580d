# SPDX-License-Identifier: Apache-2.0
"""Tests of the parsers of subcommands."""

import argparse

from cyborg_lite.cmd.support.parsers import add_command, add_group, add_plain_command


def test_command_has_description_and_option_json() -> None:
    root = argparse.ArgumentParser(prog='prog')
    parsers = root.add_subparsers()
    commands = add_group(parsers, 'jobs', 'list jobs')
    listing = add_command(commands, 'list', 'list all jobs')
    listing.add_argument('--format', default='table')
    add_plain_command(commands, 'plain', 'do nothing')
    assert 'List all jobs.' in listing.format_help()
    assert root.parse_args(['jobs', 'list']).format == 'table'
    assert root.parse_args(['jobs', 'list', '--json']).format == 'json'
    assert not hasattr(root.parse_args(['jobs', 'plain']), 'format')
