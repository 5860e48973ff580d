# SPDX-License-Identifier: Apache-2.0
"""Tests of the interface versions that calls may use."""

import pytest

from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR
from cyborg_lite.rpc import upgrade_levels
from cyborg_lite.rpc.upgrade_levels import Pins, find_lowest_level


@pytest.fixture(autouse=True)
def release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that one release came before this one."""
    release = ('0.1.0', {'conductor': '1.2', 'agent': '1.2'})
    monkeypatch.setattr(upgrade_levels, '_RELEASES', (release,))


class Daemons:
    """The running daemons, and the number of times that they were read."""

    def __init__(self, *daemons: tuple[str, str]) -> None:
        self.daemons = daemons
        self.reads = 0
        self.is_away = False
        self.now = 0.0

    def read(self) -> tuple[tuple[str, str], ...]:
        self.reads += 1
        if self.is_away:
            raise ServiceUnavailable(what='the database')
        return self.daemons

    def build_pins(self, **levels: str) -> Pins:
        return Pins(levels, self.read, lambda: self.now)


@pytest.mark.parametrize(
    ('versions', 'level'),
    [
        ([], None),
        (['0.2.0.dev7', '1.0.0', 'unknown'], None),
        (['0.1.0', '0.2.0'], '1.2'),
        (['0.1.0.dev3'], '1.2'),
        (['0.0.9', '0.1.1'], '1.2'),
    ],
)
def test_lowest_level_is_that_of_oldest_daemon(
    versions: list[str], level: str | None
) -> None:
    assert find_lowest_level('agent', versions) == level


def test_auto_follows_running_daemons_once_a_minute() -> None:
    daemons = Daemons((AGENT, '0.1.0'), (CONDUCTOR, '0.2.0'))
    pins = daemons.build_pins(agent='auto')
    assert pins.find_level('agent') == '1.2'
    assert pins.find_level('conductor') is None
    daemons.daemons = ((AGENT, '0.2.0'),)
    assert pins.find_level('agent') == '1.2'
    assert daemons.reads == 1
    daemons.now = 60.0
    assert pins.find_level('agent') is None


def test_auto_unknown_versions_keep_last_level() -> None:
    daemons = Daemons((AGENT, '0.1.0'))
    pins = daemons.build_pins()
    assert pins.find_level('agent') == '1.2'
    daemons.is_away, daemons.now = True, 60.0
    assert pins.find_level('agent') == '1.2'


def test_configured_level_reads_nothing() -> None:
    daemons = Daemons((AGENT, '0.1.0'))
    assert daemons.build_pins(agent='1.4').find_level('agent') == '1.4'
    assert daemons.reads == 0
