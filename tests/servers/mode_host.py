# SPDX-License-Identifier: Apache-2.0
"""A host with cards that have modes, and the requests that change them."""

from collections.abc import Mapping
from typing import Any, Final

from cyborg_lite.model.traits import DEGRADED
from devstack.launcher.processes import Child
from devstack.launcher.rest import Answer
from tests.servers.stack import ADMIN, Instance, expect
from tests.servers.vgpu_machine import VgpuHost

QAT: Final = '0000:e8:00.0'
"""Address of the card if a test names no other one."""
NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}


class ModeHost(VgpuHost):
    """Host with cards that have modes; the test controls its agent."""

    card = QAT
    drivers: Mapping[str, Mapping[str, object]] = {}

    def begin_agent(self, patience: int = 60, timeout: int = 30) -> Child:
        self.cloud.configure(self.drivers)
        self.settings = {'enabled_drivers': ','.join(self.drivers)}
        return super().begin_agent(patience, timeout)

    def device(self) -> str:
        query = (
            'SELECT uuid FROM devices '
            f"WHERE hostname = '{self.name}' AND control_address = '{self.card}'"
        )
        rows = self.cloud.until(lambda: self.cloud.rows(query), 'the card is stored')
        return str(rows[0][0])

    def change_mode(self, mode: str) -> Answer:
        body = [{'op': 'replace', 'path': '/mode', 'value': mode}]
        path = f'/v2/devices/{self.device()}'
        return self.cloud.api(NEWEST).ask('PATCH', path, body)

    # Any: JSON of the API.
    def modes(self) -> dict[str, Any]:
        path = f'/v2/devices/{self.device()}/modes'
        body: dict[str, Any] = expect(self.cloud.api(NEWEST).ask('GET', path), 200)
        return body

    def wait_for_mode(self, mode: str) -> None:
        def is_set() -> bool:
            modes = self.modes()
            return modes['current'] == mode and modes['change'] is None

        self.cloud.until(is_set, f'the mode is {mode}')

    def offers(self) -> dict[str, tuple[int, set[str]]]:
        """Return total and traits of each provider of the card, by its ending."""
        offers = {}
        prefix = f'{self.name}_{self.card}'
        for name, provider in self.cloud.providers().items():
            uuid = provider['uuid']
            if name.startswith(prefix):
                path = f'/resource_providers/{uuid}/traits'
                traits = expect(self.cloud.placement.ask('GET', path), 200)['traits']
                inventory = self.cloud.inventory(uuid)
                free = sum(v['total'] - v['reserved'] for v in inventory.values())
                ending = name.removeprefix(prefix)
                # The host has no privileges, which degrades its cards.
                lasting = {t for t in traits if 'CUSTOM' in t} - {DEGRADED}
                offers[ending] = free, lasting
        return offers

    def boot_from(self, resource_class: str, ending: str = '') -> Instance:
        """Return a bound instance with one unit of the provider."""
        guest = self.request(f'{self.card}{ending}', resource_class)
        expect(guest.bind(), 202)
        guest.wait_until_bound()
        return guest
