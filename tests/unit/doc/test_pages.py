# SPDX-License-Identifier: Apache-2.0
"""Commands, options, paths and metrics that the pages name, compared with the code."""

import ast
import contextlib
import importlib
import io
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.api.routes import find_controller
from cyborg_lite.conf import service_auth
from cyborg_lite.drivers import loading
from cyborg_lite.errors.base import NotFound
from devstack import command_pages

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = ROOT / 'doc' / 'source'
SAMPLE: Final = ROOT / 'etc' / 'cyborg-lite.conf.sample'
GENERATED: Final = ('api-reference.rst', 'hardware.rst')
PAGES: Final = [
    ROOT / 'README.rst',
    ROOT / 'CONTRIBUTING.rst',
    *(page for page in sorted(SOURCE.rglob('*.rst')) if page.name not in GENERATED),
]

# Commands of osc-placement, which the environment of the tests lacks.
PLACEMENT_COMMANDS: Final = {
    'allocation candidate list',
    'resource provider allocation show',
    'resource provider inventory list',
    'resource provider delete',
    'resource provider list',
    'resource provider show',
    'resource provider trait list',
}

# Options of Nova, nova-compute, Cyborg and Ansible that the pages name.
FOREIGN_OPTIONS: Final = {
    ('DEFAULT', 'resume_guests_state_on_host_boot'),
    ('DEFAULT', 'shelved_offload_time'),
    ('api', 'max_limit'),
    ('defaults', 'collections_path'),
    ('devices', 'enabled_mdev_types'),
    ('gpu_devices', 'enabled_vgpu_types'),
    ('libvirt', 'num_pcie_ports'),
    ('nic_devices', 'enabled_nic_types'),
    ('notifications', 'notification_format'),
    ('pci', 'device_spec'),
    ('scheduler', 'max_placement_results'),
    ('pci', 'alias'),
    ('pci', 'passthrough_whitelist'),
    ('pci', 'report_in_placement'),
    ('filter_scheduler', 'pci_in_placement'),
    ('DEFAULT', 'arq_binding_timeout'),
    ('cyborg', 'timeout'),
    ('service_user', 'send_service_user_token'),
    ('upgrade_levels', 'conductor'),
    ('vgpu_<type>', 'device_addresses'),
}
FOREIGN_SECTIONS: Final = re.compile(r'service_user|mdev_nvidia-\d+')

_LITERAL: Final = re.compile(r'``([^`]+)``')
_COMMAND: Final = re.compile(
    r'(?:^|\$ |sudo |until |docker exec [\w-]+ |&& |; |\| |\$\()'
    r'((?:cyborg-lite-\w+|openstack) [^|;#>)&]*)'
)
_OPTION: Final = re.compile(r'\[([\w<>-]+)\]\s+([a-z]\w*)(?:\s*=\s*(.*))?', re.DOTALL)
_CALL: Final = re.compile(r'(GET|POST|PUT|PATCH|DELETE)\s+(/v2/(?:\{[^}]+\}|[^\s?{])+)')
_FOLDERS: Final = (
    r'alembic|ansible|benchmarks|cyborg_lite|devstack|doc|etc|releasenotes|tests'
)
_PATH: Final = re.compile(rf'(?<![\w./<-])((?:{_FOLDERS})/[\w./*-]+)')
_METRIC: Final = re.compile(r'\bcyborg_lite_[a-z_]+\b')


class Parsed(BaseException):
    """The command line was accepted; the command must not run."""


def read_blocks(page: Path) -> Iterator[list[str]]:
    """Yield the lines of each indented block, without their indent."""
    block: list[str] = []
    for line in [*page.read_text().splitlines(), 'end']:
        if line.startswith(' ') or not line:
            block.append(line.strip())
        else:
            yield block
            block = []


def read_literals(page: Path) -> list[str]:
    """Return the inline literals, each in one line."""
    return [' '.join(text.split()) for text in _LITERAL.findall(page.read_text())]


def read_statements(page: Path) -> Iterator[str]:
    """Yield lines of blocks, with continued ones joined, and inline literals."""
    for block in read_blocks(page):
        text = '\n'.join(block)
        text = text.replace('\\\n', ' ')
        # A quoted JSON argument may continue on the next line.
        yield from re.sub(r"('\[[^']*')", _join_lines, text).splitlines()
    yield from read_literals(page)


def _join_lines(match: re.Match[str]) -> str:
    return match.group().replace('\n', ' ')


def read_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command line of this service or of ``openstack``."""
    for statement in read_statements(page):
        for command in _COMMAND.findall(statement):
            words = shlex.split(command)
            if '...' not in words:
                yield words


@cache
def list_help() -> Mapping[tuple[str, ...], command_pages.Page]:
    """Return the help of all commands, by path."""
    return {
        page.path: page
        for prog in command_pages.COMMANDS
        for page in command_pages.walk_pages([prog])
    }


def check_command(words: list[str]) -> None:
    """Parse a command line with the parser of the command, without a run.

    :raises AssertionError: the parser refuses it
    """
    if tuple(words) in list_help():
        return
    while '--config-file' in words:
        index = words.index('--config-file')
        words = words[:index] + words[index + 2 :]
    parse = configuration.parse

    def stop_after_parse(*arguments: Any, **options: Any) -> None:
        parse(*arguments, **options)
        raise Parsed

    errors = io.StringIO()
    with (
        mock.patch.object(configuration, 'parse', stop_after_parse),
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(errors),
    ):
        try:
            command_pages.COMMANDS[words[0]](words[1:])
        except Parsed:
            return
        except SystemExit as error:
            if not error.code:  # --help or --version
                return
    pytest.fail(f'{shlex.join(words)}: {errors.getvalue()}')


@cache
def list_client_commands() -> Mapping[str, metadata.EntryPoint]:
    """Return the commands of the ``openstack`` client, by name."""
    return {
        entry.name.replace('_', ' '): entry
        for distribution in metadata.distributions()
        for entry in distribution.entry_points
        if entry.group.startswith('openstack.')
        and distribution.name != 'python-cyborgclient'
    }


def check_client_command(words: list[str]) -> None:
    """Check the name of an ``openstack`` command, and the options of accelerators.

    :raises AssertionError: there is no such command, or its parser refuses the words
    """
    path = [word for word in words[1:] if not word.startswith('-')]
    names = [' '.join(path[:length]) for length in range(len(path), 0, -1)]
    name = next((name for name in names if name in list_client_commands()), None)
    if any(' '.join(path).startswith(command) for command in PLACEMENT_COMMANDS):
        return
    if name is None:
        # A page may name a group of commands.
        prefix = ' '.join(path)
        assert any(command.startswith(prefix) for command in list_client_commands()), (
            words
        )
        return
    if not name.startswith('accelerator ') or len(words) == 1 + len(name.split()):
        return
    entry = list_client_commands()[name]
    module = importlib.import_module(entry.module)
    parser = getattr(module, entry.attr)(mock.Mock(), None).get_parser(name)
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            parser.parse_args(words[1 + len(name.split()) :])
        except SystemExit:
            pytest.fail(f'{shlex.join(words)}: {errors.getvalue()}')


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_commands_on_pages_are_accepted_by_parsers(page: Path) -> None:
    checks: dict[bool, Callable[[list[str]], None]] = {
        True: check_client_command,
        False: check_command,
    }
    for words in read_commands(page):
        checks[words[0] == 'openstack'](words)


@cache
def list_option_names() -> frozenset[tuple[str, str]]:
    """Return section and name of the options in the sample file, and of credentials."""
    names = {
        ('keystone_authtoken', option.dest) for option in service_auth.PLUGIN_OPTIONS
    }
    section = ''
    for line in SAMPLE.read_text().splitlines():
        if match := re.fullmatch(r'\[([\w.-]+)\]', line):
            section = match.group(1)
        elif match := re.match(r'#([\w.-]+) =', line):
            names.add((section, match.group(1)))
    return frozenset(names)


@cache
def list_option_types() -> Mapping[tuple[str, str], Callable[[str], object]]:
    """Return the types of the options of this service, by section and name."""
    return {
        (group, option.dest): option.type
        for group, options in [*configuration.list_opts(), *loading.list_opts()]
        for option in options
    }


def read_options(page: Path) -> Iterator[tuple[str, str, str | None]]:
    """Yield section, name and value of the options in blocks and inline literals."""
    for block in read_blocks(page):
        section = ''
        for line in block:
            if match := re.fullmatch(r'\[([\w<>-]+)\]', line):
                section = match.group(1)
            elif section and (match := re.match(r'([\w.-]+) = (.*)', line)):
                yield section, match.group(1), match.group(2)
    for literal in read_literals(page):
        if match := _OPTION.fullmatch(literal):
            yield match.group(1), match.group(2), match.group(3)


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_options_on_pages_exist_and_accept_values(page: Path) -> None:
    for section, name, value in read_options(page):
        if (section, name) in list_option_names():
            convert = list_option_types().get((section, name))
            if value and convert:
                convert(value)
            continue
        is_foreign = (section, name) in FOREIGN_OPTIONS
        assert is_foreign or FOREIGN_SECTIONS.fullmatch(section), (section, name)


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_rest_calls_on_pages_have_controller(page: Path) -> None:
    for method, path in _CALL.findall(' '.join(page.read_text().split())):
        try:
            controller, _ = find_controller(path.rstrip('`.,:;)'))
        except NotFound:
            pytest.fail(f'no path {path}')
        assert hasattr(controller, method.lower()), f'{method} {path}'


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_repository_paths_on_pages_exist(page: Path) -> None:
    texts = [*read_literals(page), *(' '.join(block) for block in read_blocks(page))]
    paths = {
        path.rstrip('.')
        for text in texts
        for path in _PATH.findall(text)
        if not re.search('NAME|acme', path)  # a file that the reader creates
    }
    assert not [path for path in paths if not list(ROOT.glob(path.rstrip('/')))]


@cache
def read_code() -> str:
    """Return the code that names metrics and the variables of the Ansible roles."""
    files = [*(ROOT / 'cyborg_lite').rglob('*.py'), *(ROOT / 'ansible').rglob('*.y*ml')]
    return '\n'.join(file.read_text() for file in files)


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_metrics_on_pages_exist(page: Path) -> None:
    for literal in read_literals(page):
        for name in _METRIC.findall(literal):
            stem = name.removeprefix('cyborg_lite_').removesuffix('_total')
            assert re.search(rf'\b(?:cyborg_lite_)?{stem}\b', read_code()), name


def test_pages_are_below_one_toctree_each() -> None:
    entries: list[Path] = []
    for page in SOURCE.rglob('*.rst'):
        for body in re.findall(r'\.\. toctree::\n((?:   .*\n|\n)+)', page.read_text()):
            entries += [
                (page.parent / f'{line.strip()}.rst').resolve()
                for line in body.splitlines()
                if line.strip() and not line.strip().startswith(':')
            ]
    assert sorted(entries) == sorted(
        set(SOURCE.rglob('*.rst')) - {SOURCE / 'index.rst'}
    )


def test_log_lines_of_troubleshooting_are_in_code() -> None:
    page = (SOURCE / 'troubleshooting.rst').read_text()
    section = page.split('\nLog lines\n')[1].split('\nREST calls\n')[0]
    lines = re.findall(r'^``([^`]+)``$', section, re.MULTILINE)
    constants = {
        re.sub(r'%[.\d]*[sdf]', '...', node.value)
        for file in (ROOT / 'cyborg_lite').rglob('*.py')
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    # Work that is repeated has a subject, which one line of code logs.
    constants |= {f'{subject} failed: ...' for subject in constants}
    assert len(lines) > 5
    assert not set(lines) - constants
