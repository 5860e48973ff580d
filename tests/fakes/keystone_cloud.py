# SPDX-License-Identifier: Apache-2.0
"""A cloud where everybody comes with a token of a real Keystone."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from devstack.launcher.rest import Service
from tests.fakes import out_of_tree
from tests.fakes.loadable_driver import LoadableDriver
from tests.fakes.real_glance import RealGlance
from tests.fakes.real_keystone import PASSWORD, Person, RealKeystone
from tests.fakes.stack import ADMIN, USER, Cloud, Options


class KeystoneCloud(Cloud):
    """Its API, its Nova and, where it has one, its Glance are in the catalog."""

    def __init__(
        self,
        directory: Path,
        keystone: RealKeystone,
        *,
        glance: str | None = None,
        options: Options | None = None,
    ) -> None:
        """:param glance: its address"""
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
                'keystone_authtoken': self._authtoken(),
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

    def _authtoken(self) -> dict[str, object]:
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
        self._published = [publish(*one) for one in self._catalog.items()]
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        for service in self._published:
            self.keystone.withdraw(service)

    def token(self, person: Person) -> str:
        """One that is asked for once."""
        if person not in self._tokens:
            self._tokens[person] = self.keystone.token_of(person)
        return self._tokens[person]

    def api(self, persona: Mapping[str, str] = ADMIN) -> Service:
        """The personas are those of ``stack``; here each comes with tokens."""
        headers = {k: v for k, v in persona.items() if k.startswith('OpenStack')}
        who = self.member if persona == USER else self.admin
        headers['X-Auth-Token'] = self.token(who)
        if 'X-Service-Roles' in persona:
            headers['X-Service-Token'] = self.token(self.service)
        return Service(f'http://127.0.0.1:{self.port}', headers)


@contextmanager
def cloud_with_cards(
    keystone: RealKeystone, glance: RealGlance, directory: Path
) -> Iterator[KeystoneCloud]:
    """One process with the fake device, and with a card that images are loaded into."""
    cloud = KeystoneCloud(
        directory,
        keystone,
        glance=glance.endpoint,
        options={'agent': {'enabled_drivers': 'fake_driver,loadable_driver'}},
    )
    cloud.python_path.append(out_of_tree.install(LoadableDriver, directory / 'site'))
    with cloud:
        cloud.start('standalone')
        cloud.provider_of('FPGA')
        yield cloud
