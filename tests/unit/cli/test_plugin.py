# SPDX-License-Identifier: Apache-2.0
"""Tests of the plugin: the names of its commands, and their help."""

from importlib import metadata

import pytest

from cyborg_lite.cli import plugin
from tests.support.api.command_line import GROUP, list_commands


def test_group_is_the_one_that_the_client_loads() -> None:
    name = f'openstack.{plugin.API_NAME}.v{plugin.DEFAULT_API_VERSION}'
    assert name == GROUP
    assert plugin.DEFAULT_API_VERSION in plugin.API_VERSIONS


@pytest.mark.parametrize('client', ['python-openstackclient', 'python-cyborgclient'])
def test_no_command_replaces_one_of_a_client(client: str) -> None:
    points = metadata.distribution(client).entry_points
    names = points.select(group='openstack.accelerator.v2').names
    foreign = {name.removeprefix('accelerator_').replace('_', ' ') for name in names}
    assert len(foreign) >= 21
    assert foreign & set(list_commands()) == set()


def test_every_command_has_description_and_help_of_options() -> None:
    commands = list_commands()
    assert len(commands) >= 23
    for words, command in commands.items():
        parser = command(None, None).get_parser(words)
        assert parser.description, words
        for action in parser._actions:
            assert action.help, f'{words}: {action.dest}'
