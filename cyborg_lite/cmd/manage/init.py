# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage init``: writes a minimal configuration and checks it.

A value that no flag gives is asked on a terminal. Without a terminal it must be given.
"""

import getpass
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.db.core import clock
from cyborg_lite.drivers import loading
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.rpc import transport

_CONTROLLER: Final = 'controller'
_COMPUTE: Final = 'compute'
_BOTH: Final = 'all'


@dataclass(frozen=True, slots=True)
class Question:
    """A value of the configuration that the operator gives."""

    name: str
    text: str
    roles: tuple[str, ...]
    default: str | None = None  # None: the operator must give a value
    is_secret: bool = False

    @property
    def flag(self) -> str:
        """Return the flag that gives the value."""
        return f'--{self.name.replace("_", "-")}'


_ON_CONTROLLERS: Final = (_CONTROLLER, _BOTH)
_ON_HOSTS: Final = (_COMPUTE, _BOTH)
_EVERYWHERE: Final = (_CONTROLLER, _COMPUTE, _BOTH)

QUESTIONS: Final = (
    Question(
        'transport_url',
        'URL of RabbitMQ, such as rabbit://cyborg_lite:SECRET@controller:5672/VHOST',
        _EVERYWHERE,
        is_secret=True,
    ),
    Question(
        'connection',
        'URL of the database, such as mysql+pymysql://USER:SECRET@controller/cyborg_lite',
        _ON_CONTROLLERS,
        is_secret=True,
    ),
    Question(
        'auth_url',
        'URL of Keystone, such as http://controller:5000/v3',
        _ON_CONTROLLERS,
    ),
    Question(
        'username', 'user of the service in Keystone', _ON_CONTROLLERS, 'cyborg_lite'
    ),
    Question('password', 'password of this user', _ON_CONTROLLERS, is_secret=True),
    Question('project_name', 'project of this user', _ON_CONTROLLERS, 'service'),
    Question(
        'user_domain_name',
        'domain of this user in Keystone',
        _ON_CONTROLLERS,
        'Default',
    ),
    Question(
        'project_domain_name', 'domain of the project', _ON_CONTROLLERS, 'Default'
    ),
    Question('enabled_drivers', 'drivers of this host, separated by commas', _ON_HOSTS),
)

_AUTH: Final = (
    *('auth_url', 'username', 'password', 'project_name'),
    *('user_domain_name', 'project_domain_name'),
)

# The broker section of the installation guide. It must be the same on all hosts.
_BROKER: Final = {
    'rabbit_quorum_queue': 'true',
    'rabbit_transient_quorum_queue': 'true',
    'rabbit_stream_fanout': 'true',
    'rabbit_qos_prefetch_count': '16',
    'use_queue_manager': 'true',
    'kombu_reconnect_splay': '2',
}
_LOCK_PATH: Final = '/var/lib/cyborg-lite/locks'

Answers = Mapping[str, str]


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'init',
        'write a minimal configuration and check it; asks on a terminal for what no '
        'flag gives; the exit status is 1 if a check fails',
        _run,
    )
    parser.add_argument('--role', choices=_EVERYWHERE, required=True)
    parser.add_argument(
        '--output', required=True, metavar='FILE', help='new file, which must not exist'
    )
    for question in QUESTIONS:
        help_text = question.text.replace('%', '%%')
        parser.add_argument(question.flag, dest=question.name, help=help_text)
    parser.add_argument('--no-check', action='store_true', help='connect to no server')


def _run(conf: cfg.ConfigOpts) -> int:
    """Write the file and check it.

    :returns: 1 if a check fails
    :raises InvalidInput: a value is missing or has several lines
    :raises ConfigurationError: the written file is invalid
    """
    command = conf.command
    answers = dict(_collect_answers(command))
    # Passwords: only the owner may read the file.
    descriptor = os.open(command.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
        file.writelines(f'{line}\n' for line in format_lines(command.role, answers))
    print(f'Created {command.output}. Its owner must be the user of the daemons.')
    try:
        written = configuration.parse([], 'cyborg-lite-manage', [command.output])
    except SystemExit as error:
        raise ConfigurationError(reason=str(error)) from None
    return 0 if command.no_check else _report(_list_checks(command.role, written))


def _collect_answers(command: Any) -> Iterator[tuple[str, str]]:
    """Yield name and value of each question of the role.

    :raises InvalidInput: a value has several lines, or is missing and there is no
        terminal
    """
    for question in QUESTIONS:
        if command.role in question.roles:
            value = getattr(command, question.name)
            answer = _ask(question) if value is None else value
            if '\n' in answer:
                raise InvalidInput(reason=f'{question.flag} has several lines.')
            yield question.name, answer


def _ask(question: Question) -> str:
    if not sys.stdin.isatty():
        if question.default is not None:
            return question.default
        raise InvalidInput(reason=f'The option {question.flag} is required.')
    prompt = f'{question.text}{f" [{question.default}]" if question.default else ""}: '
    read = getpass.getpass if question.is_secret else input
    answer = ''
    while not answer:
        answer = read(prompt).strip() or question.default or ''
    return answer


def format_lines(role: str, answers: Answers) -> Iterator[str]:
    """Yield the lines of the configuration file."""
    yield '# Written by cyborg-lite-manage init.'
    for section, options in _build_sections(role, answers).items():
        yield from ('', f'[{section}]')
        # A dollar refers to another option of oslo.config.
        yield from (
            f'{name} = {value.replace("$", "$$")}' for name, value in options.items()
        )


def _build_sections(role: str, answers: Answers) -> dict[str, Mapping[str, str]]:
    sections: dict[str, Mapping[str, str]] = {
        'DEFAULT': {'transport_url': answers['transport_url']},
        'oslo_messaging_rabbit': _BROKER,
        'oslo_concurrency': {'lock_path': _LOCK_PATH},
    }
    if role in _ON_CONTROLLERS:
        auth = {'auth_type': 'password', **{name: answers[name] for name in _AUTH}}
        sections['database'] = {'connection': answers['connection']}
        sections['keystone_authtoken'] = {
            **auth,
            'www_authenticate_uri': answers['auth_url'],
        }
        sections['placement'] = sections['nova'] = auth
    if role in _ON_HOSTS:
        sections['agent'] = {'enabled_drivers': answers['enabled_drivers']}
    return sections


def _list_checks(
    role: str, conf: cfg.ConfigOpts
) -> Iterator[tuple[str, Callable[[], object]]]:
    yield 'RabbitMQ', lambda: _check_broker(conf)
    if role in _ON_CONTROLLERS:
        yield 'database', lambda: _check_database(conf)
        yield (
            'Keystone and Placement',
            lambda: Placement.from_config(conf).list_hosts_with_trait(OWNER_CYBORG),
        )
    if role in _ON_HOSTS:
        host = Host(conf.host, Path(conf.agent.sysfs_root))
        drivers = conf.agent.enabled_drivers
        yield 'drivers', lambda: loading.load_drivers(drivers, host, conf)


def _report(checks: Iterator[tuple[str, Callable[[], object]]]) -> int:
    rows: list[Sequence[object]] = [('CHECK', 'RESULT')]
    status = 0
    for name, check in checks:
        try:
            check()
        except CyborgError as error:
            rows.append((name, error.text))
            status = 1
        else:
            rows.append((name, 'ok'))
    print(format_table(rows))
    return status


def _check_broker(conf: cfg.ConfigOpts) -> None:
    bus = transport.connect(conf, identity=None)
    try:
        transport.check_connection(bus)
    finally:
        bus.cleanup()


def _check_database(conf: cfg.ConfigOpts) -> None:
    with database.open_database(conf) as db:
        db.read(clock.read_time_before, 0)
