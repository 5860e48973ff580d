# SPDX-License-Identifier: Apache-2.0
"""Reading the configuration, and the manners of every option."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration

OURS = [
    (section.GROUP, option)
    for section in configuration._sections()
    for option in section.OPTIONS
    # Those that come from keystoneauth have its texts.
    if section.GROUP not in ('placement', 'nova', 'glance')
]
every_option = pytest.mark.parametrize(
    ('group', 'option'), OURS, ids=lambda it: getattr(it, 'name', it)
)


def write(folder: Path, name: str, **options: object) -> str:
    path = folder / name
    lines = [f'{key} = {value}' for key, value in options.items()]
    path.write_text('\n'.join(['[DEFAULT]', *lines, '']))
    return str(path)


def test_without_a_file_there_are_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(configuration.VARIABLE, raising=False)
    conf = configuration.parse([], 'prog', config_files=[])
    assert conf.host
    assert conf.conductor.workers == 1


def test_the_environment_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(configuration.VARIABLE, write(tmp_path, 'a', host='from-env'))
    assert configuration.parse([], 'prog').host == 'from-env'


def test_the_command_line_comes_before_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(configuration.VARIABLE, write(tmp_path, 'a', host='from-env'))
    given = write(tmp_path, 'b', host='from-caller')
    named = write(tmp_path, 'c', host='from-line')
    assert configuration.parse([], 'prog', [given]).host == 'from-caller'
    line = ['--config-file', named]
    assert configuration.parse(line, 'prog', [given]).host == 'from-line'


def test_two_configurations_do_not_know_of_one_another(tmp_path: Path) -> None:
    one = configuration.parse([], 'prog', [write(tmp_path, 'a', host='one')])
    two = configuration.parse([], 'prog', [write(tmp_path, 'b', host='two')])
    assert (one.host, two.host) == ('one', 'two')


@pytest.mark.parametrize(
    ('arguments', 'wrong'),
    [
        (['--config-file', '/no/such/file'], '/no/such/file'),
        (['--no-such-option'], 'no-such-option'),
    ],
)
def test_a_mistake_ends_the_process_with_what_is_wrong(
    arguments: list[str], wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        configuration.parse(arguments, 'prog', [])
    assert caught.value.code not in (0, None)
    assert wrong in f'{caught.value.code}{capsys.readouterr().err}'


def test_a_value_out_of_its_range_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'bad'
    path.write_text('[conductor]\nworkers = 0\n')
    with pytest.raises(SystemExit, match='workers'):
        configuration.parse([], 'prog', [str(path)])


def test_a_command_may_have_options_of_its_own() -> None:
    conf = configuration.parse(
        ['--format', 'json'], 'prog', [], [cfg.StrOpt('format', default='table')]
    )
    assert conf.format == 'json'


def test_log_lines_carry_the_request_and_the_caller() -> None:
    conf = configuration.parse([], 'prog', [])
    shape = conf.logging_context_format_string
    for field in ('global_request_id', 'request_id', 'user', 'project_id'):
        assert f'%({field})s' in shape


@every_option
def test_every_option_explains_itself(group: str, option: cfg.Opt) -> None:
    text = ' '.join((option.help or '').split())
    assert re.search(r'[.;:]', text), f'{group}.{option.name} has no sentence'
    assert len(text) >= 60, (
        f'{group}.{option.name}: say the effect and when to change it'
    )


@every_option
def test_every_number_has_its_bounds(group: str, option: cfg.Opt) -> None:
    if isinstance(option, cfg.IntOpt | cfg.FloatOpt):
        bound = getattr(option.type, 'min', None)
        assert bound is not None, f'{group}.{option.name} needs a minimum'


def test_every_option_can_stand_in_the_sample() -> None:
    listed = {group for group, _options in configuration.list_opts()}
    assert {'DEFAULT', 'conductor', 'placement', 'nova'} <= listed


def test_parsing_opens_no_room_above() -> None:
    """What only parses, such as a command that talks to no one, stays light."""
    code = (
        'import sys; from cyborg_lite import conf; conf.parse([], "x", []);'
        'print([name for name in sys.modules'
        ' if name.split(".")[0] in ("sqlalchemy", "oslo_messaging", "pecan")])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == '[]'
