# SPDX-License-Identifier: Apache-2.0
"""Parsing of the configuration, and rules for the texts and bounds of options."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration

OPTIONS = [
    (section.GROUP, option)
    for section in configuration._SECTIONS
    for option in section.OPTIONS
    # The options of these sections have the help texts of keystoneauth.
    if section.GROUP not in ('placement', 'nova', 'glance', 'oslo_limit')
]
all_options = pytest.mark.parametrize(
    ('group', 'option'), OPTIONS, ids=lambda value: getattr(value, 'name', value)
)


def write(folder: Path, name: str, **options: object) -> str:
    path = folder / name
    lines = [f'{key} = {value}' for key, value in options.items()]
    path.write_text('\n'.join(['[DEFAULT]', *lines, '']))
    return str(path)


def test_parse_without_files_uses_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(configuration.VARIABLE, raising=False)
    conf = configuration.parse([], 'prog', config_files=[])
    assert conf.host
    assert conf.conductor.workers == 1


def test_parse_reads_file_from_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(configuration.VARIABLE, write(tmp_path, 'a', host='from-env'))
    assert configuration.parse([], 'prog').host == 'from-env'


def test_parse_command_line_overrides_other_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(configuration.VARIABLE, write(tmp_path, 'a', host='from-env'))
    caller_file = write(tmp_path, 'b', host='from-caller')
    arguments = ['--config-file', write(tmp_path, 'c', host='from-line')]
    assert configuration.parse([], 'prog', [caller_file]).host == 'from-caller'
    assert configuration.parse(arguments, 'prog', [caller_file]).host == 'from-line'


def test_parse_twice_returns_independent_configurations(tmp_path: Path) -> None:
    first = configuration.parse([], 'prog', [write(tmp_path, 'a', host='first')])
    second = configuration.parse([], 'prog', [write(tmp_path, 'b', host='second')])
    assert (first.host, second.host) == ('first', 'second')


@pytest.mark.parametrize(
    ('arguments', 'offender'),
    [
        (['--config-file', '/no/such/file'], '/no/such/file'),
        (['--no-such-option'], 'no-such-option'),
    ],
)
def test_parse_invalid_arguments_exits_with_offender(
    arguments: list[str], offender: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        configuration.parse(arguments, 'prog', [])
    assert caught.value.code not in (0, None)
    assert offender in f'{caught.value.code}{capsys.readouterr().err}'


def test_parse_accepts_options_of_one_command() -> None:
    conf = configuration.parse(
        ['--format', 'json'], 'prog', [], [cfg.StrOpt('format', default='table')]
    )
    assert conf.format == 'json'


def test_log_format_contains_request_and_caller() -> None:
    conf = configuration.parse([], 'prog', [])
    log_format = conf.logging_context_format_string
    for field in ('global_request_id', 'request_id', 'user', 'project_id'):
        assert f'%({field})s' in log_format


@all_options
def test_option_help_is_sentence(group: str, option: cfg.Opt) -> None:
    text = ' '.join((option.help or '').split())
    assert re.search(r'[.;:]', text), f'{group}.{option.name} has no sentence'
    assert len(text) >= 60, (
        f'{group}.{option.name}: state the effect and when to change it'
    )


@all_options
def test_option_number_has_minimum(group: str, option: cfg.Opt) -> None:
    if isinstance(option, cfg.IntOpt | cfg.FloatOpt):
        bound = getattr(option.type, 'min', None)
        assert bound is not None, f'{group}.{option.name} needs a minimum'


def test_list_opts_returns_every_section() -> None:
    groups = {group for group, _options in configuration.list_opts()}
    sections = {section.GROUP for section in configuration._SECTIONS}
    assert groups == sections
    assert {'DEFAULT', 'conductor', 'placement', 'nova'} <= groups


def test_list_opts_help_has_no_line_breaks() -> None:
    for group, options in configuration.list_opts():
        for option in options:
            assert '\n' not in (option.help or ''), f'{group}.{option.name}'


def test_parse_imports_no_heavy_library() -> None:
    """A command that needs no other daemon starts fast."""
    code = (
        'import sys; from cyborg_lite import conf; conf.parse([], "x", []);'
        'print([name for name in sys.modules'
        ' if name.split(".")[0] in ("sqlalchemy", "oslo_messaging", "pecan")])'
    )
    result = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == '[]'
