# SPDX-License-Identifier: Apache-2.0
"""Tests of groups of handles that one instance gets together."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.builders.agent_parts import AgentParts
from tests.doubles.drivers import PreparingDriver, discovery_result, handle, refusal
from tests.doubles.rebootable_host import boot

CARDS = tuple(f'0000:0{number}:00.0' for number in range(1, 5))


class FabricDriver(PreparingDriver):
    """Driver of cards on a fabric whose partitions have two cards."""

    def __init__(self, host: Host) -> None:
        super().__init__(host, {})
        self.results = [discovery_result(address) for address in CARDS]
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.failure: Exception | None = None  # of ``activate``

    def find_group(self, handle: AllocatedHandle) -> str:
        return '' if handle.control_address == CARDS[3] else 'fabric'

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        self._record('activate', members)
        if len(members) != 2:
            raise refusal('A partition has two cards.')
        if self.failure is not None:
            raise self.failure

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        self._record('deactivate', members)

    def _record(self, name: str, members: Iterable[AllocatedHandle]) -> None:
        self.calls.append((name, tuple(member.uuid for member in members)))


class Site:
    """A host with cards on a fabric, and its agent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        boot(root, 'first')
        self.host = Host('compute-1', root)
        self.driver = FabricDriver(self.host)
        self.restart()

    def restart(self) -> None:
        """Start a new process of the agent."""
        drivers = {'scripted': self.driver}
        parts = AgentParts(self.host, drivers, self.root / 'state')
        self.cache, self.preparation = parts.cache, parts.preparation


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


PAIR = [handle(CARDS[0], 'a'), handle(CARDS[1], 'b')]
CALL = 'activate', ('a', 'b')
UNDO = 'deactivate', ('a', 'b')


def test_prepare_activates_exact_members_once(site: Site) -> None:
    site.preparation.prepare([handle(CARDS[3], 'd'), *reversed(PAIR)])
    assert site.driver.calls == [CALL]
    assert site.driver.prepared == {'a', 'b', 'd'}


def test_release_deactivates_members_once(site: Site) -> None:
    site.preparation.prepare(PAIR)
    site.restart()
    for member in PAIR:
        site.preparation.release([member])
    assert site.driver.calls == [CALL, UNDO]
    assert (site.driver.prepared, site.cache.handles) == (set(), {})


def test_refused_group_releases_all_handles(site: Site) -> None:
    with pytest.raises(DriverError, match='A partition has two cards'):
        site.preparation.prepare([*PAIR, handle(CARDS[2], 'c')])
    assert (site.driver.prepared, site.cache.handles) == (set(), {})
    assert site.driver.calls[1:] == [('deactivate', ('a', 'b', 'c'))]


def test_late_repetition_with_failing_activation_keeps_group(site: Site) -> None:
    """The ARQs may be Bound since an earlier call."""
    site.preparation.prepare(PAIR)
    site.driver.failure = refusal()
    with pytest.raises(DriverError):
        site.preparation.prepare(PAIR)
    assert site.driver.prepared == set(site.cache.handles) == {'a', 'b'}
    assert site.driver.calls == [CALL, CALL]


def test_rebuild_activates_group_after_last_member(site: Site) -> None:
    site.preparation.prepare(PAIR)
    boot(site.root, 'second')
    site.restart()
    site.preparation.rebuild(PAIR[0])
    assert site.driver.calls == [CALL]
    site.preparation.rebuild(PAIR[1])
    assert site.driver.calls == [CALL, CALL]
