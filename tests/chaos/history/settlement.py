# SPDX-License-Identifier: Apache-2.0
"""End of a run: all faults are mended, and the cloud must become consistent."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sqlalchemy import create_engine, text

from tests.chaos.files_driver import UNITS
from tests.chaos.history.cluster import Cluster
from tests.servers.stack import expect

_ARQS: Final = '/v2/accelerator_requests'
LIMIT: Final = 120.0  # seconds; a job is tried again after 30 s at most
_POLL: Final = 0.2  # seconds


class Settlement:
    """Waits for a consistent state and lists what prevents it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def wait(self) -> list[str]:
        """Wait until the cloud is consistent; return the differences."""
        self._restore_hosts()
        deadline = time.monotonic() + LIMIT
        checks = self._list_jobs, self._list_inventories, self._list_prepared
        return [text for check in checks for text in self._repeat(check, deadline)]

    def clear(self) -> None:
        """Delete all ARQs, allocations and records, for the next schedule."""
        service, placement = self._cluster.service(0), self._cluster.placement
        for arq in expect(service.ask('GET', _ARQS), 200)['arqs']:
            expect(service.ask('DELETE', f'{_ARQS}/{arq["uuid"]}'), 204)
        for _, provider in self._cluster.hosts:
            path = f'/resource_providers/{provider}/allocations'
            for instance in expect(placement.ask('GET', path), 200)['allocations']:
                placement.ask('DELETE', f'/allocations/{instance}')
        differences = self.wait()
        assert not differences, differences
        self._cluster.clear_history()

    def _restore_hosts(self) -> None:
        """Enable all devices, with all their handles."""
        for number, device in enumerate(self._cluster.devices):
            self._cluster.resize(number, UNITS)
            deadline = time.monotonic() + LIMIT
            self._repeat(partial(self._enable, device), deadline)

    def _enable(self, device: str) -> list[str]:
        path = f'/v2/devices/{device}'
        patch = [{'op': 'replace', 'path': '/status', 'value': 'enabled'}]
        answer = self._cluster.service(0).ask('PATCH', path, patch)
        return [] if answer.status == 200 else [f'{path}: {answer.status}']

    @staticmethod
    def _repeat(check: Callable[[], list[str]], deadline: float) -> list[str]:
        """Repeat a check until it lists nothing, or until the deadline."""
        while True:
            try:
                differences = check()
            except OSError as error:  # an API that was killed starts
                differences = [str(error)]
            if not differences or time.monotonic() > deadline:
                return differences
            time.sleep(_POLL)

    def _list_jobs(self) -> list[str]:
        query = "SELECT kind, state, last_error FROM jobs WHERE kind <> 'audit'"
        return [f'job {row}' for row in self._rows(query)]

    def _list_inventories(self) -> list[str]:
        """List hosts whose inventory in Placement is not as reported."""
        query = 'SELECT h.uuid FROM attach_handles h WHERE h.missing'
        differences = [f'handle {row} is missing' for row in self._rows(query)]
        for host, provider in self._cluster.hosts:
            inventory = self._cluster.inventory(provider).get('VGPU', {})
            if (inventory.get('total'), inventory.get('reserved')) != (UNITS, 0):
                differences.append(f'inventory of {host}: {inventory}')
        return differences

    def _list_prepared(self) -> list[str]:
        """List the ARQs with a prepared or an owned handle, but not both."""
        query = 'SELECT arq_uuid FROM attach_handles WHERE arq_uuid IS NOT NULL'
        owners = {owner for (owner,) in self._rows(query)}
        prepared = self._cluster.list_prepared()
        return [f'ARQ {arq}: prepared, or owner' for arq in owners ^ set(prepared)]

    # Any: rows have no types.
    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        engine = create_engine(self._cluster.connection)
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(query))]
        finally:
            engine.dispose()
