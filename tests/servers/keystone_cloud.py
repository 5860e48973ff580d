# SPDX-License-Identifier: Apache-2.0
"""Cloud whose callers authenticate with tokens of a real Keystone."""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest

from devstack.launcher.rest import Service
from tests.builders import driver_packages
from tests.doubles.loadable_driver import LoadableDriver
from tests.servers.glance import RealGlance
from tests.servers.keystone import PASSWORD, Person, RealKeystone
from tests.servers.stack import ADMIN, USER, Cloud, Options


class KeystoneCloud(Cloud):
    """Cloud whose API, Nova and optional Glance are in the Keystone catalog."""

    def __init__(
        self,
        directory: Path,
        keystone: RealKeystone,
        *,
        glance: str | None = None,
        options: Options | None = None,
    ) -> None:
        """Store the arguments.

        :param glance: URL of Glance
        """
        name = uuid.uuid4().hex[:8]  # one Keystone serves many clouds
        lab, service = keystone.project(f'lab-{name}'), keystone.project(f's-{name}')
        self.keystone = keystone
        self.admin = keystone.person(f'admin-{name}', lab, 'admin', 'member')
        self.member = keystone.person(f'member-{name}', lab, 'member')
        self.service = keystone.person(f'nova-{name}', service, 'service')
        super().__init__(
            directory,
            transport_url='local://',
            connection=f'sqlite:///{directory}/db.sqlite',
            options={
                **(options or {}),
                'api': {'auth_strategy': 'keystone'},
                'keystone_authtoken': self._build_authtoken_options(),
                **({'glance': {'endpoint_override': glance}} if glance else {}),
            },
        )
        self._catalog = {
            'accelerator': f'http://127.0.0.1:{self.port}/v2',
            'compute': self.nova.endpoint,
            **({'image': glance} if glance else {}),
        }
        self._published: list[str] = []
        self._tokens: dict[Person, str] = {}

    def _build_authtoken_options(self) -> dict[str, object]:
        return {
            'www_authenticate_uri': self.keystone.url,
            'auth_type': 'password',
            'auth_url': self.keystone.url,
            'username': self.service.user,
            'password': PASSWORD,
            'user_domain_id': 'default',
            'project_id': self.service.project_id,
        }

    def __enter__(self) -> Self:
        publish = self.keystone.publish
        self._published = [publish(*entry) for entry in self._catalog.items()]
        return super().__enter__()

    def __exit__(self, *trouble: object) -> None:
        super().__exit__(*trouble)
        for service in self._published:
            self.keystone.withdraw(service)

    def token(self, person: Person) -> str:
        """Return a token of a person; it is requested once."""
        if person not in self._tokens:
            self._tokens[person] = self.keystone.token_of(person)
        return self._tokens[person]

    def api(self, persona: Mapping[str, str] = ADMIN) -> Service:
        """Return a client for a persona of ``stack``, with tokens of Keystone."""
        headers = {k: v for k, v in persona.items() if k.startswith('OpenStack')}
        is_member = persona.get('X-User-Id') == USER['X-User-Id']
        person = self.member if is_member else self.admin
        headers['X-Auth-Token'] = self.token(person)
        if 'X-Service-Roles' in persona:
            headers['X-Service-Token'] = self.token(self.service)
        return Service(f'http://127.0.0.1:{self.port}', headers)


@pytest.fixture(scope='module')
def cloud(
    keystone: RealKeystone,
    real_glance: RealGlance,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[KeystoneCloud]:
    """Start one process with the fake device and a card that can be programmed."""
    directory = tmp_path_factory.mktemp('cloud')
    cloud = KeystoneCloud(
        directory,
        keystone,
        glance=real_glance.endpoint,
        options={'agent': {'enabled_drivers': 'fake_driver,loadable_driver'}},
    )
    cloud.python_path.append(
        driver_packages.install(LoadableDriver, directory / 'site')
    )
    with cloud:
        cloud.start('standalone')
        cloud.provider_of('FPGA')
        yield cloud
