# SPDX-License-Identifier: Apache-2.0
"""Tests of the page that describes the commands by their help."""

import re
from types import ModuleType

import pytest

from devstack.command_pages import Page, read_help
from tests.unit.doc.extensions import load


@pytest.fixture(scope='module')
def command_text() -> ModuleType:
    return load('command_text')


def test_read_arguments_has_all_options_of_help(command_text: ModuleType) -> None:
    page = read_help(['cyborg-lite-manage', 'topology'])
    arguments = dict(command_text.read_arguments(page))
    names = {re.split('[ ,]', name)[-1] for name in arguments}
    assert 'HOST' in names
    (text,) = (arguments[name] for name in arguments if name.startswith('--format'))
    assert text.startswith('svg is a picture')
    assert all(re.search(name, ' '.join(arguments)) for name in page.options)


def test_describe_leaves_out_common_arguments(command_text: ModuleType) -> None:
    text = 'usage: a\n\nList *all*.\n\noptions:\n  -h, --help  show help\n  --x X  a\n'
    lines = command_text.describe(Page(('a', 'b'), text), {'-h, --help'})
    assert lines[1:4] == ['a b', '---', '']
    assert 'List \\*all\\*.' in lines
    assert '   * - ``--x X``' in lines
    assert not [line for line in lines if '--help' in line]
