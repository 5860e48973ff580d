# SPDX-License-Identifier: Apache-2.0
"""End of a run: all faults are mended, and the cloud must become consistent."""

import time
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import create_engine, text

from tests.chaos.files_driver import UNITS
from tests.chaos.history.cluster import Cluster

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

    def _restore_hosts(self) -> None:
        """Enable all devices, with all their handles."""
        for number, device in enumerate(self._cluster.devices):
            self._cluster.resize(number, UNITS)
            path = f'/v2/devices/{device}/enable'
            deadline = time.monotonic() + LIMIT
            self._repeat(lambda path=path: self._enable(path), deadline)

    def _enable(self, path: str) -> list[str]:
        answer = self._cluster.service(0).ask('POST', path)
        return [] if answer.status == 204 else [f'{path}: {answer.status}']

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
        differences = []
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
