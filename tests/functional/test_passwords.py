# SPDX-License-Identifier: Apache-2.0
"""A second user replaces the first one, as the page says: broker, database, Keystone.

Real daemons: they restart one after the other, and the first users are then refused.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.http_proxy import HttpProxy
from tests.servers.keystone import PASSWORD, Person, RealKeystone, keystone
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.stack import Cloud

__all__ = ['keystone']

_FIRST: Final = {
    'mariadb': (
        "CREATE USER {first} IDENTIFIED BY 'password-{first}'",
        'GRANT ALL ON {database}.* TO {first}',
    ),
    'postgresql': (
        "CREATE ROLE {first} LOGIN PASSWORD 'password-{first}'",
        'ALTER DATABASE {database} OWNER TO {first}',
    ),
}
_SECOND: Final = {
    'mariadb': (
        "CREATE USER {second} IDENTIFIED BY 'password-{second}'",
        'GRANT ALL ON {database}.* TO {second}',
    ),
    'postgresql': (
        "CREATE ROLE {second} LOGIN PASSWORD 'password-{second}' IN ROLE {first}",
    ),
}
_END: Final = {
    'mariadb': ('DROP USER {first}',),
    'postgresql': ('ALTER ROLE {first} NOLOGIN',),
}
_REMOVAL: Final = {
    'mariadb': ('DROP USER IF EXISTS {first}, {second}',),
    'postgresql': ('DROP ROLE IF EXISTS {second}', 'DROP ROLE IF EXISTS {first}'),
}


class Users:
    """Two users of a virtual host of the broker and of a database."""

    def __init__(self, broker: str, database: str, kind: str) -> None:
        self.broker, self.database = broker, make_url(database)
        self._kind = kind
        self._vhost = urlsplit(broker).path.removeprefix('/')
        name = str(self.database.database)
        suffix = name.rpartition('_')[2]
        self.first, self.second = f'first_{suffix}', f'second_{suffix}'
        self._names = {
            'first': self.first,
            'second': self.second,
            'database': name,
        }

    def run(self, statements: Mapping[str, tuple[str, ...]]) -> None:
        lobby = 'postgres' if self._kind == 'postgresql' else 'mysql'
        engine = create_engine(
            self.database.set(database=lobby), isolation_level='AUTOCOMMIT'
        )
        with engine.connect() as connection:
            for statement in statements[self._kind]:
                connection.execute(text(statement.format(**self._names)))
        engine.dispose()

    def add_to_broker(self, user: str) -> None:
        assert rabbitmq.control('add_user', user, f'password-{user}')
        permissions = ('.*', '.*', '.*')
        assert rabbitmq.control(
            'set_permissions', '-p', self._vhost, user, *permissions
        )

    def options(self, user: str) -> dict[str, dict[str, object]]:
        """Return the options of a daemon that has the passwords of a user."""
        password = f'password-{user}'
        address = urlsplit(self.broker).netloc.rpartition('@')[2]
        url = self.database.set(username=user, password=password)
        return {
            'DEFAULT': {
                'transport_url': f'rabbit://{user}:{password}@{address}/{self._vhost}'
            },
            'database': {'connection': url.render_as_string(hide_password=False)},
        }

    def remove(self) -> None:
        self.run(_REMOVAL)
        for user in (self.first, self.second):
            rabbitmq.control('delete_user', user)


@pytest.fixture(params=_FIRST)
def users(request: pytest.FixtureRequest) -> Iterator[Users]:
    with ExitStack() as cleanup:
        broker = cleanup.enter_context(rabbitmq.virtual_host())
        database = contextmanager(fresh_database)(request.param)
        with database as connection:
            created = Users(broker, connection, request.param)
            cleanup.callback(created.remove)
            created.run(_FIRST)
            created.add_to_broker(created.first)
            yield created


def check_boot(cloud: Cloud) -> None:
    instance = cloud.boot_bound('FPGA')
    instance.end()


def test_second_user_replaces_first_in_service(users: Users, tmp_path: Path) -> None:
    options = users.options(users.first)
    broker = str(options['DEFAULT']['transport_url'])
    connection = str(options['database']['connection'])
    with Cloud(tmp_path, transport_url=broker, connection=connection) as cloud:
        cloud.migrate()
        daemons = {name: cloud.start(name) for name in ('conductor', 'agent', 'api')}
        check_boot(cloud)

        users.run(_SECOND)
        users.add_to_broker(users.second)
        cloud.configure(users.options(users.second))
        for name, daemon in daemons.items():
            daemon.end()
            cloud.restart(daemon, name)
            check_boot(cloud)

        users.run(_END)
        assert rabbitmq.control('delete_user', users.first)
        check_boot(cloud)
        with pytest.raises(OperationalError):
            create_engine(connection).connect()


def name_service_user(cloud: KeystoneCloud, person: Person, placement: str) -> None:
    """Have daemons that start from now on authenticate as a person."""
    user: dict[str, object] = {
        'auth_type': 'password',
        'auth_url': cloud.keystone.url,
        'username': person.user,
        'password': PASSWORD,
        'user_domain_id': 'default',
        'project_id': person.project_id,
    }
    section = {**user, 'endpoint_override': placement}
    cloud.configure({'keystone_authtoken': user, 'placement': section})


def test_second_keystone_user_replaces_first(
    keystone: RealKeystone, tmp_path: Path
) -> None:
    with KeystoneCloud(tmp_path, keystone) as cloud, ExitStack() as stack:
        target = cloud.placement.endpoint
        proxy = HttpProxy(target, lambda _: 'passed', token='admin')
        placement = stack.enter_context(proxy).url
        first = cloud.service
        name_service_user(cloud, first, placement)
        daemon = cloud.start('standalone')
        cloud.provider_of('FPGA')
        check_boot(cloud)
        second = keystone.person(f'{first.user}-2', first.project_id, 'service')
        cloud.service = second
        name_service_user(cloud, second, placement)
        daemon.end()
        cloud.restart(daemon, 'standalone')
        check_boot(cloud)
        keystone.disable(first)
        check_boot(cloud)
