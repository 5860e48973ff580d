# SPDX-License-Identifier: Apache-2.0
"""Forecasts equal the capacities in a real Placement after the change was made."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.forecasts import ForecastResult, HardwareChange, NewDevice
from cyborg_lite.model.inventory import HostReport
from tests.builders.forecast_fleets import Card, ForecastFleet, check_after
from tests.builders.reports import HOST
from tests.builders.selector_fleets import create_profile
from tests.builders.service_rows import mark_up
from tests.doubles.agents import ModeAgents
from tests.servers.databases import database_fixture
from tests.servers.placement import CountedRemote, remote

__all__ = ['remote']

database = database_fixture('sqlite')

TRAITS = ((), ('HW_GPU_API_VULKAN',))
CARD = st.tuples(
    st.sampled_from(['PGPU', 'VGPU']), st.integers(1, 3), st.sampled_from(TRAITS)
)


@pytest.fixture
def fleet(database: Database, remote: CountedRemote) -> ForecastFleet:
    return ForecastFleet(database, Placement(remote))


def build_groups(cards: list[Card]) -> list[dict[str, str]]:
    return [
        {f'resources:{name}': str(units)}
        | {f'trait:{trait}': 'required' for trait in traits}
        for name, units, traits in cards
    ]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    hosts=st.lists(st.lists(CARD, min_size=1, max_size=3), min_size=1, max_size=2),
    group_cards=st.lists(CARD, min_size=1, max_size=2),
    new=st.tuples(CARD, st.integers(1, 2)),
    data=st.data(),
)
def test_forecast_equals_capacity_after_change(
    fleet: ForecastFleet,
    hosts: list[list[Card]],
    group_cards: list[Card],
    new: tuple[Card, int],
    data: st.DataObject,
) -> None:
    names = [fleet.add_host(cards) for cards in hosts]
    uuid = create_profile(fleet.database, *build_groups(group_cards)).uuid
    source = data.draw(st.sampled_from(names))
    device = data.draw(st.sampled_from(fleet.list_devices(source)))
    (resource_class, units, traits), count = new
    added = NewDevice(names[-1], {resource_class: units}, traits, count=count)
    before = fleet.count(uuid)
    (forecast,) = fleet.forecast(
        HardwareChange(device), HardwareChange(device=added), profiles=(uuid,)
    ).profiles
    assert fleet.count(uuid) == before
    fleet.remove(source, device)
    fleet.make(names[-1], added)
    after = fleet.count(uuid)
    check_after(forecast, after)
    assert forecast.before.servers == before.servers
    difference = after.servers - before.servers
    expected = ForecastResult.UNCHANGED
    if difference:
        gains = difference > 0
        expected = ForecastResult.GAINS if gains else ForecastResult.LOSES
    assert forecast.result is expected


def test_forecast_mode_equals_capacity_after_change(
    fleet: ForecastFleet, remote: CountedRemote
) -> None:
    fleet.agents = ModeAgents()
    mark_up(fleet.database, HOST)
    root = fleet.placement.find_provider_by_name(HOST)
    if root is None:
        fleet.placement.create_provider(
            '6f1c2a30-0000-4000-8000-0000000000aa', HOST, None
        )
    report = HostReport(HOST, 'boot', (ModeAgents.BEFORE,))
    fleet.database.write(reports.store_report, report)
    fleet.runner.sync(HOST)
    fleet.placement.create_custom_names((), ['CUSTOM_MODE_B'])
    name = ModeAgents.BEFORE.root.resource_class
    group = {f'resources:{name}': '1', 'trait:CUSTOM_MODE_B': 'required'}
    uuid = create_profile(fleet.database, group).uuid
    (device,) = fleet.list_devices(HOST)
    remote.calls.clear()
    (forecast,) = fleet.forecast(HardwareChange(device, 'b')).profiles
    assert len(remote.calls) == 1
    assert forecast.result is ForecastResult.GAINS
    report = HostReport(HOST, 'boot', (ModeAgents.AFTER,))
    fleet.database.write(reports.store_report, report)
    fleet.runner.sync(HOST)
    check_after(forecast, fleet.count(uuid))
