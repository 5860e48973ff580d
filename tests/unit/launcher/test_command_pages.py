# SPDX-License-Identifier: Apache-2.0
"""Man pages and shell completion compared with the commands.

The texts of library options are not compared, because they change with their versions.
"""

import subprocess
from importlib import metadata

import pytest

from cyborg_lite import conf as configuration
from devstack import command_pages

REMEDY = 'run `tox run -e gencommands`'


@pytest.mark.parametrize('prog', command_pages.COMMANDS)
def test_man_page_describes_each_subcommand(prog: str) -> None:
    text = (command_pages.MAN / f'{prog}.8').read_text()
    pages = list(command_pages.walk_pages([prog]))
    for page in pages:
        assert f'.SH "{" ".join(page.path).upper()}"' in text, REMEDY
        for option in page.options:
            assert option.replace('-', '\\-') in text, REMEDY


@pytest.mark.parametrize('prog', command_pages.COMMANDS)
def test_help_of_each_command_has_description(prog: str) -> None:
    for page in command_pages.walk_pages([prog]):
        usage, description, *_sections = page.text.split('\n\n')
        assert usage.startswith('usage: ')
        assert not description.startswith(('options:', 'positional arguments:')), (
            f'{" ".join(page.path)} has no description'
        )


def test_every_console_script_has_page() -> None:
    scripts = metadata.entry_points(group='console_scripts')
    names = {script.name for script in scripts if script.name.startswith('cyborg-lite')}
    assert names == set(command_pages.COMMANDS)


@pytest.mark.parametrize(
    ('words', 'expected'),
    [
        (['cyborg-lite-manage', 'placement', 'a'], ['audit']),
        (['cyborg-lite-manage', 'placement', 'audit', '--ho'], ['--host']),
        (['cyborg-lite-agent', 'd'], ['discover']),
    ],
)
def test_completion_offers_subcommands_and_options(
    words: list[str], expected: list[str]
) -> None:
    quoted = ' '.join(f'"{word}"' for word in words)
    script = (
        f'source {command_pages.COMPLETION}; COMP_WORDS=({quoted}); '
        f'COMP_CWORD={len(words) - 1}; _cyborg_lite {words[0]}; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    result = subprocess.run(
        ['bash', '-c', script], capture_output=True, text=True, check=True
    )
    assert set(expected) <= set(result.stdout.split())


def test_shell_completion_prints_script_and_starts_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        configuration.parse(['--shell_completion', 'bash'], 'cyborg-lite-agent')
    assert caught.value.code == 0
    assert capsys.readouterr().out == command_pages.COMPLETION.read_text()
