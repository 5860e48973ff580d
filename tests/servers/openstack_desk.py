# SPDX-License-Identifier: Apache-2.0
"""Command line of an administrator with the ``openstack`` program.

A test module imports the fixtures, and has a fixture ``cloud`` of one running service.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.servers import openstack_program
from tests.servers.glance import RealGlance
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.openstack_program import OWN, PLUGIN, Done, OpenStackProgram
from tests.servers.stack import ADMIN, expect

_NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.3'}


@dataclass(frozen=True)
class Desk:
    """Command line of an administrator."""

    cloud: KeystoneCloud
    program: OpenStackProgram
    glance: RealGlance

    @property
    def plugin(self) -> bool:
        return self.program.commands == PLUGIN

    def run(self, *arguments: str, **options: Any) -> Done:
        return self.program.run('accelerator', *arguments, **options)

    # Any: JSON of the command.
    def read(self, *arguments: str, **options: Any) -> Any:
        return self.run(*arguments, '-f', 'json', **options).json

    def run_as_nova(self, *arguments: str) -> Done:
        token = self.cloud.token(self.cloud.service)
        return self.run(*arguments, '-f', 'json', service_token=token)

    def query_api(self, path: str) -> Any:
        """Return the answer of the service without a client."""
        return expect(self.cloud.api(_NEWEST).ask('GET', f'/v2/{path}'), 200)

    def new_profile(self) -> dict[str, Any]:
        name = f'p-{uuid4().hex[:8]}'
        created: dict[str, Any] = self.read(
            'device', 'profile', 'create', name, '[{"resources:FPGA": 1}]'
        )
        return created

    def new_arq(self) -> str:
        uuid: str = self.read('arq', 'create', self.new_profile()['name'])['uuid']
        return uuid

    def fake_device(self) -> str:
        devices = self.read('device', 'list')
        (uuid,) = (row['uuid'] for row in devices if row['vendor'] == '0xABCD')
        return str(uuid)

    def deployable(self, ending: str) -> str:
        deployables = self.read('deployable', 'list')
        (uuid,) = (row['uuid'] for row in deployables if row['name'].endswith(ending))
        return str(uuid)


@pytest.fixture(scope='module')
def programs(cloud: KeystoneCloud) -> Iterator[dict[str, OpenStackProgram]]:
    person_environment = openstack_program.environment(cloud.keystone, cloud.admin)
    with (
        OpenStackProgram(person_environment, OWN) as own,
        OpenStackProgram(person_environment, PLUGIN) as plugin,
    ):
        yield {OWN: own, PLUGIN: plugin}


@pytest.fixture(params=[OWN, PLUGIN])
def desk(
    request: pytest.FixtureRequest,
    cloud: KeystoneCloud,
    programs: dict[str, OpenStackProgram],
    real_glance: RealGlance,
) -> Desk:
    return Desk(cloud, programs[request.param], real_glance)
