# SPDX-License-Identifier: Apache-2.0
"""After a boot everything is as it was, or somebody is told why not."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.recovery import Recovery
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import (
    CyborgError,
    DeviceGone,
    LoadingFailed,
    ServiceUnavailable,
)
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import Outcome
from tests.fakes.bitstream_files import bitstream
from tests.fakes.drivers import handle, refusal
from tests.fakes.rebooting import ForgetfulDriver, boot
from tests.fakes.report_keeper import ReportKeeper

_ONE, _OTHER = '0000:01:00.0', '0000:02:00.0'
_FOR_EVER = 3600.0


class Agent:
    """One process of the agent, as far as recovery needs it."""

    def __init__(self, directory: Path, driver: ForgetfulDriver) -> None:
        state = directory / 'state'
        self.driver = driver
        self.cache, self.journal = Cache(state), Journal(state)
        self.cache.open()
        self.journal.open()
        host = Host('compute-1', directory)
        self.discovery = Discovery(host, {'scripted': driver}, 60.0)
        self.discovery.look()
        self.preparation = Preparation(self.discovery, self.cache, self.journal)
        self.stopping = threading.Event()
        self.recovery = self.recover_within(_FOR_EVER)

    def recover_within(self, patience: float) -> Recovery:
        return Recovery(
            self.discovery, self.preparation, self.cache, self.journal, patience
        )

    def rebuild(self) -> bool:
        return self.recovery.rebuild(self.stopping, 0.0)


Start = Callable[[], Agent]


@pytest.fixture
def driver(tmp_path: Path) -> ForgetfulDriver:
    boot(tmp_path, 'boot-1')
    return ForgetfulDriver(Host('compute-1', tmp_path), _ONE, _OTHER)


@pytest.fixture
def start(tmp_path: Path, driver: ForgetfulDriver) -> Start:
    return lambda: Agent(tmp_path, driver)


@pytest.fixture
def in_use(start: Start) -> Agent:
    """With three handles that guests have."""
    agent = start()
    handles = [handle(_ONE, 'a'), handle(_ONE, 'b'), handle(_OTHER, 'c')]
    agent.preparation.prepare(handles)
    agent.driver.attempts.clear()
    return agent


def test_after_a_boot_all_is_made_again_under_the_same_names(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    agent = start()
    assert agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}
    told = [(event.kind, event.arq_uuid) for event in agent.journal.waiting(9)[3:]]
    expected = [('Rebuilt', f'arq-of-{uuid}') for uuid in 'abc']
    assert sorted(told) == expected


def test_a_restart_without_a_boot_touches_nothing(in_use: Agent, start: Start) -> None:
    agent = start()
    assert not agent.rebuild()
    assert agent.driver.attempts == []


def test_a_second_restart_after_a_boot_touches_nothing(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    start().rebuild()
    in_use.driver.attempts.clear()
    assert not start().rebuild()
    assert in_use.driver.attempts == []


def test_what_was_begun_when_the_agent_died_is_finished(
    in_use: Agent, start: Start
) -> None:
    in_use.cache.intend([handle(_ONE, 'begun')])
    agent = start()
    assert agent.rebuild()
    assert agent.driver.attempts == ['begun']


def test_what_was_released_before_the_boot_stays_so(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    in_use.preparation.release([handle(_ONE, 'b')])
    boot(tmp_path, 'boot-2')
    agent = start()
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'c'}


def test_vendor_drivers_may_take_their_time(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.slow = 20
    agent = start()
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}
    assert agent.driver.slow == 0


def test_a_card_that_comes_up_late_is_waited_for(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.late = 4
    agent = start()
    assert agent.discovery.driver_of(_ONE) is None
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'b', 'c'}


def test_patience_ends_and_the_others_are_kept(
    in_use: Agent, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.refused['b'] = refusal('No such type.')
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    caplog.set_level(logging.ERROR)
    agent.rebuild()
    assert agent.driver.prepared == {'a', 'c'}
    conductor = ReportKeeper()
    assert agent.recovery.tell(conductor)
    (outcome,) = conductor.outcomes
    assert sorted(outcome.rebuilt) == ['a', 'c']
    assert outcome.lost == {'b': 'No such type.'}
    assert [record.levelname for record in caplog.records] == ['ERROR']
    assert agent.journal.waiting(9)[-1].kind == 'NotRebuilt'


def test_a_mistake_in_a_driver_costs_only_its_handle(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.refused['a'] = ZeroDivisionError()
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    agent.rebuild()
    assert agent.driver.prepared == {'b', 'c'}


def test_what_was_lost_is_tried_again_by_the_next_process(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.refused['b'] = refusal()
    first = start()
    first.recovery = first.recover_within(0.0)
    first.rebuild()
    del in_use.driver.refused['b']
    assert start().rebuild()
    assert in_use.driver.prepared == {'a', 'b', 'c'}


def test_an_agent_that_is_to_end_gives_nothing_up(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.slow = 10**9
    agent = start()
    agent.stopping.set()
    agent.rebuild()
    conductor = ReportKeeper()
    agent.recovery.tell(conductor)
    assert conductor.outcomes == [Outcome('compute-1', 'boot-2')]


def test_what_was_released_after_it_was_lost_is_not_told_again(
    in_use: Agent, start: Start, tmp_path: Path
) -> None:
    boot(tmp_path, 'boot-2')
    in_use.driver.refused['b'] = refusal()
    agent = start()
    agent.recovery = agent.recover_within(0.0)
    agent.rebuild()
    del in_use.driver.refused['b']
    agent.preparation.release([handle(_ONE, 'b')])
    conductor = ReportKeeper()
    agent.recovery.tell(conductor)
    assert conductor.outcomes[0].lost == {}


# --- a cache that was lost ---------------------------------------------------------


def test_what_only_the_conductor_knows_of_is_rebuilt(start: Start) -> None:
    agent, conductor = start(), ReportKeeper()
    conductor.provisioning = [handle(_ONE, 'a'), handle(_OTHER, 'c')]
    assert not agent.recovery.tell(conductor)
    assert agent.driver.prepared == {'a', 'c'}
    assert agent.recovery.tell(conductor)
    assert sorted(conductor.outcomes[-1].rebuilt) == ['a', 'c']
    assert set(agent.cache.kept) == {'a', 'c'}


def test_what_only_the_conductor_knows_of_gets_the_same_patience(start: Start) -> None:
    agent, conductor = start(), ReportKeeper()
    conductor.provisioning = [handle(_ONE, 'a')]
    agent.driver.refused['a'] = refusal('No such type.')
    assert [agent.recovery.tell(conductor) for _ in range(3)] == [False] * 3
    agent.recovery = agent.recover_within(0.0)
    assert not agent.recovery.tell(conductor)
    assert agent.recovery.tell(conductor)
    assert conductor.outcomes[-1].lost == {'a': 'No such type.'}


def test_a_conductor_that_is_away_is_told_later(in_use: Agent) -> None:
    conductor = ReportKeeper()
    conductor.refusal = ServiceUnavailable(what='cyborg-lite-conductor')
    with pytest.raises(ServiceUnavailable):
        in_use.recovery.tell(conductor)
    conductor.refusal = None
    assert in_use.recovery.tell(conductor)
    assert sorted(conductor.outcomes[0].rebuilt) == ['a', 'b', 'c']


# --- what was loaded into a card ----------------------------------------------------


class Loads:
    """What loads bitstreams, or fails as it is told."""

    def __init__(self, *failures: CyborgError) -> None:
        self.failures = list(failures)
        self.orders: list[LoadOrder] = []

    def __call__(self, order: LoadOrder) -> None:
        self.orders.append(order)
        if self.failures:
            raise self.failures.pop(0)


def loaded(uuid: str = 'a') -> HeldHandle:
    order = LoadOrder(_ONE, '_region0', bitstream())
    return replace(handle(_ONE, uuid), load=order)


def booted(agent: Agent, start: Start, tmp_path: Path, load: Loads | None) -> Agent:
    """The next process, on a host that was booted meanwhile."""
    agent.preparation.prepare([loaded()])
    boot(tmp_path, 'boot-2')
    after = start()
    parts = after.discovery, after.cache, after.journal
    after.preparation = Preparation(*parts, load)
    return after


def test_what_a_guest_had_loaded_is_loaded_again(start: Start, tmp_path: Path) -> None:
    load = Loads()
    agent = booted(start(), start, tmp_path, load)
    agent.recovery = agent.recover_within(_FOR_EVER)
    agent.driver.attempts.clear()
    assert agent.rebuild()
    assert load.orders == [loaded().load]
    assert agent.driver.attempts == ['a']
    keeper = ReportKeeper()
    agent.recovery.tell(keeper)
    assert keeper.outcomes[-1].rebuilt == ('a',)


def test_while_it_cannot_be_loaded_it_is_not_ready(
    start: Start, tmp_path: Path
) -> None:
    load = Loads(ServiceUnavailable(what='Glance'), DeviceGone(address=_ONE))
    agent = booted(start(), start, tmp_path, load)
    agent.recovery = agent.recover_within(_FOR_EVER)
    agent.driver.attempts.clear()
    assert agent.rebuild()
    assert len(load.orders) == 3
    assert agent.driver.attempts == ['a']


@pytest.mark.parametrize('with_glance', [True, False])
def test_what_cannot_be_loaded_again_is_lost_with_the_reason(
    with_glance: bool, start: Start, tmp_path: Path
) -> None:
    failure = LoadingFailed(image='x', reason='CRC error')
    load = Loads(failure) if with_glance else None
    agent = booted(start(), start, tmp_path, load)
    agent.recovery = agent.recover_within(0)
    agent.rebuild()
    keeper = ReportKeeper()
    agent.recovery.tell(keeper)
    reason = keeper.outcomes[-1].lost['a']
    assert ('CRC error' if with_glance else 'no [glance] section') in reason
