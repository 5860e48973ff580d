# SPDX-License-Identifier: Apache-2.0
"""Tests of forecasts, compared with the capacity after the change was made."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.nova_support import NovaRules
from cyborg_lite.db import devices
from cyborg_lite.db.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.tables import AttachHandle
from cyborg_lite.exceptions import (
    DeviceNotFound,
    DeviceProfileNotFound,
    HostAway,
    InvalidInput,
)
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.device_errors import ModeRefused
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.forecasts import (
    ForecastResult,
    HardwareChange,
    NewDevice,
    ProfileForecast,
)
from cyborg_lite.model.inventory import HandleType, HostReport
from cyborg_lite.model.modes import DeviceMode, DeviceModes, OfferedInventory
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.forecast_fleets import ForecastFleet, check_after, read_hosts
from tests.builders.reports import HOST
from tests.builders.rows import add_arqs
from tests.builders.selector_fleets import compile_keys, create_profile
from tests.builders.service_rows import mark_down, mark_up
from tests.doubles.agents import ModeAgents
from tests.doubles.placement import FakePlacement

T4, A100 = ('CUSTOM_T4',), ('CUSTOM_A100',)
ONE = {'resources:PGPU': '1'}
TWO = {'resources:PGPU': '2', 'trait:CUSTOM_T4': 'required'}
LARGE = typed_attributes.MEMORY.of(81920)
SELECTING = compile_keys(selector='device.memory_mib >= 40GiB')


@pytest.fixture
def fleet(database: Database) -> ForecastFleet:
    placement = FakePlacement()
    placement.names |= {'PGPU', 'VGPU', *T4, *A100}
    return ForecastFleet(database, placement)


def remove(uuid: str) -> HardwareChange:
    return HardwareChange(uuid)


def add(host: str, **fields: object) -> HardwareChange:
    device = NewDevice(host, {'PGPU': 2}, T4)
    return HardwareChange(device=replace(device, **fields))  # type: ignore[arg-type]  # checked by the class


def pick(forecasts: tuple[ProfileForecast, ...], uuid: str) -> ProfileForecast:
    return next(item for item in forecasts if item.uuid == uuid)


def test_forecast_removal_equals_capacity_after_removal(fleet: ForecastFleet) -> None:
    host = fleet.add_host([('PGPU', 2, T4), ('PGPU', 3, A100)])
    fleet.add_host([('PGPU', 4, T4)])
    single, double = (
        create_profile(fleet.database, group).uuid for group in (ONE, TWO)
    )
    device, _ = fleet.list_devices(host)
    before = fleet.count(single)
    forecast = fleet.forecast(remove(device))
    assert fleet.count(single) == before
    assert forecast.effects[0].vanishes == (OfferedInventory('PGPU', 2, T4),)
    fleet.remove(host, device)
    for uuid, servers in [(single, (9, 7)), (double, (3, 2))]:
        profile = pick(forecast.profiles, uuid)
        assert profile.result is ForecastResult.LOSES
        assert profile.after is not None
        assert (profile.before.servers, profile.after.servers) == servers
        assert read_hosts(profile.before).keys() == {host}
        check_after(profile, fleet.count(uuid))


def test_forecast_addition_equals_capacity_after_addition(fleet: ForecastFleet) -> None:
    host = fleet.add_host([('PGPU', 1, A100)])
    single, double = (
        create_profile(fleet.database, group).uuid for group in (ONE, TWO)
    )
    new = create_profile(fleet.database, {'resources:VGPU': '1'}).uuid
    change = add(host, count=2, amounts={'PGPU': 3})
    forecast = fleet.forecast(change)
    assert change.device is not None
    fleet.make(host, change.device)
    for uuid in (single, double):
        profile = pick(forecast.profiles, uuid)
        assert profile.result is ForecastResult.GAINS
        check_after(profile, fleet.count(uuid))
    assert pick(forecast.profiles, new).result is ForecastResult.UNCHANGED


def test_forecast_writes_nothing(fleet: ForecastFleet) -> None:
    host = fleet.add_host([('PGPU', 2, T4)])
    create_profile(fleet.database, ONE)
    before = list(fleet.placement.writes)
    fleet.forecast(remove(fleet.list_devices(host)[0]), add(host))
    assert list(fleet.placement.writes) == before
    assert len(fleet.list_devices(host)) == 1


def test_forecast_new_host_is_assumed(fleet: ForecastFleet) -> None:
    single = create_profile(fleet.database, ONE).uuid
    forecast = fleet.forecast(add('compute-new'))
    assert 'does not know the host' in forecast.effects[0].warnings[0]
    assert read_hosts(pick(forecast.profiles, single).after) == {
        'compute-new': (2, True)
    }


def test_forecast_new_device_on_silent_host_adds_nothing(fleet: ForecastFleet) -> None:
    host = fleet.add_host([('PGPU', 2, T4)])
    mark_down(fleet.database, host)
    single = create_profile(fleet.database, ONE).uuid
    forecast = fleet.forecast(add(host))
    assert forecast.effects[0].warnings == ('The agent of the host is not up.',)
    assert pick(forecast.profiles, single).result is ForecastResult.UNCHANGED


def test_forecast_new_mdev_that_nova_drops_adds_nothing(fleet: ForecastFleet) -> None:
    host = fleet.add_host()
    single = create_profile(fleet.database, ONE).uuid
    change = add(host, handle_type=HandleType.MDEV)
    for attaches, result in [
        (False, ForecastResult.UNCHANGED),
        (True, ForecastResult.GAINS),
    ]:
        fleet.rules = NovaRules(attaches_mdev=attaches)
        assert pick(fleet.forecast(change).profiles, single).result is result


@pytest.mark.parametrize(
    ('attributes', 'result'),
    [
        ((LARGE,), ForecastResult.GAINS),
        ((typed_attributes.MEMORY.of(16384),), ForecastResult.UNCHANGED),
        ((), ForecastResult.UNKNOWN),
    ],
)
def test_forecast_selector_compares_stated_attributes(
    fleet: ForecastFleet, attributes: tuple[object, ...], result: ForecastResult
) -> None:
    host = fleet.add_host([('PGPU', 1, ())])
    uuid = create_profile(fleet.database, SELECTING).uuid
    fleet.runner.run()
    change = add(host, attributes=attributes)
    (profile,) = fleet.forecast(change).profiles
    assert profile.result is result
    if result is ForecastResult.UNKNOWN:
        assert profile.after is None
        assert 'device.memory_mib' in profile.reasons[0]
        return
    assert change.device is not None
    fleet.make(host, change.device)
    check_after(profile, fleet.count(uuid))


def test_forecast_profile_that_does_not_exist(fleet: ForecastFleet) -> None:
    host = fleet.add_host()
    fleet.add_card(host, ('PGPU', 2, T4), (LARGE,))
    fleet.add_card(host, ('PGPU', 3, T4))
    fleet.runner.sync(host)
    moment = datetime.now(UTC)
    new = DeviceProfile('', 'new', None, (SELECTING,), moment)
    (forecast,) = fleet.forecast(
        add(host, attributes=(LARGE,)), new_profile=new
    ).profiles
    assert (forecast.uuid, forecast.name) == ('', '')
    uuid = create_profile(fleet.database, SELECTING).uuid
    fleet.runner.run()
    assert (
        read_hosts(forecast.before)
        == read_hosts(fleet.count(uuid))
        == {host: (2, True)}
    )
    assert read_hosts(forecast.after) == {host: (4, True)}


def test_forecast_alternative_that_fits_after_change(fleet: ForecastFleet) -> None:
    host = fleet.add_host([('VGPU', 3, ())])
    moment = datetime.now(UTC)
    new = DeviceProfile(
        '', 'new', None, (ONE,), moment, alternatives=(({'resources:VGPU': '1'},),)
    )
    (forecast,) = fleet.forecast(add(host), new_profile=new).profiles
    assert forecast.after is not None
    assert (forecast.before.choice, forecast.after.choice) == ((1,), (0,))
    assert forecast.result is ForecastResult.LOSES


def test_forecast_unknown_device_or_profile_is_refused(fleet: ForecastFleet) -> None:
    with pytest.raises(DeviceNotFound):
        fleet.forecast(remove('nobody'))
    with pytest.raises(DeviceProfileNotFound):
        fleet.forecast(profiles=('nobody',))


def test_forecast_many_groups_are_refused(fleet: ForecastFleet) -> None:
    groups = [{'resources:PGPU': str(number)} for number in range(1, 202)]
    new = DeviceProfile('', 'new', None, tuple(groups), datetime.now(UTC))
    with pytest.raises(InvalidInput, match='201 different groups'):
        fleet.forecast(new_profile=new)


def test_forecast_many_profiles_must_be_named(fleet: ForecastFleet) -> None:
    profiles = [create_profile(fleet.database, ONE).uuid for _ in range(101)]
    with pytest.raises(InvalidInput, match='more than 100 device profiles'):
        fleet.forecast()
    assert len(fleet.forecast(profiles=tuple(profiles[:100])).profiles) == 100
    assert fleet.placement.calls.count('GET /allocation_candidates') == 1


# --- modes ---


@pytest.fixture
def mode_fleet(fleet: ForecastFleet) -> ForecastFleet:
    """Return a fleet with a card that has the modes a and b."""
    fleet.agents = ModeAgents()
    fleet.placement.create_provider('root', HOST, None)
    fleet.placement.names |= {'CUSTOM_MODE_B'}
    mark_up(fleet.database, HOST)
    store(fleet, ModeAgents.BEFORE)
    return fleet


def store(fleet: ForecastFleet, card: object) -> None:
    report = HostReport(HOST, 'boot', (card,))  # type: ignore[arg-type]  # a device
    fleet.database.write(reports.store_report, report)
    fleet.runner.sync(HOST)


def test_forecast_mode_equals_capacity_after_change(mode_fleet: ForecastFleet) -> None:
    name = ModeAgents.BEFORE.root.resource_class
    base = {f'resources:{name}': '1'}
    plain = create_profile(mode_fleet.database, base).uuid
    special = create_profile(
        mode_fleet.database, {**base, 'trait:CUSTOM_MODE_B': 'required'}
    ).uuid
    (device,) = mode_fleet.list_devices(HOST)
    forecast = mode_fleet.forecast(HardwareChange(device, 'b'))
    results = [pick(forecast.profiles, uuid).result for uuid in (plain, special)]
    assert results == [ForecastResult.UNCHANGED, ForecastResult.GAINS]
    store(mode_fleet, ModeAgents.AFTER)
    for uuid in (plain, special):
        check_after(pick(forecast.profiles, uuid), mode_fleet.count(uuid))


def test_forecast_current_mode_changes_nothing(mode_fleet: ForecastFleet) -> None:
    create_profile(mode_fleet.database, ONE)
    (device,) = mode_fleet.list_devices(HOST)
    forecast = mode_fleet.forecast(HardwareChange(device, 'a'))
    assert (forecast.effects[0].appears, forecast.effects[0].vanishes) == ((), ())
    assert forecast.profiles[0].result is ForecastResult.UNCHANGED


def test_forecast_mode_selector_is_unknown(mode_fleet: ForecastFleet) -> None:
    name = ModeAgents.BEFORE.root.resource_class
    selecting = compile_keys(selector='device.memory_mib >= 1GiB')
    group = {
        f'resources:{name}': '1',
        **{key: value for key, value in selecting.items() if 'resources' not in key},
    }
    create_profile(mode_fleet.database, group)
    mode_fleet.runner.run()
    (device,) = mode_fleet.list_devices(HOST)
    (profile,) = mode_fleet.forecast(HardwareChange(device, 'b')).profiles
    assert (profile.result, profile.after) == (ForecastResult.UNKNOWN, None)
    assert 'device.memory_mib' in profile.reasons[0]


def test_forecast_mode_with_new_class_has_unknown_handles(
    mode_fleet: ForecastFleet,
) -> None:
    class OtherClass(ModeAgents):
        def list_modes(
            self, context: RequestContext, host: str
        ) -> tuple[DeviceModes, ...]:
            (modes,) = super().list_modes(context, host)
            offer = OfferedInventory('PGPU', 4)
            mode = DeviceMode('c', (offer,))
            return (replace(modes, modes=(*modes.modes, mode)),)

    mode_fleet.agents = OtherClass()
    uuid = create_profile(mode_fleet.database, {'resources:PGPU': '1'}).uuid
    change = HardwareChange(mode_fleet.list_devices(HOST)[0], 'c')
    (profile,) = mode_fleet.forecast(change).profiles
    assert profile.result is ForecastResult.UNKNOWN
    assert 'type of the attach handles' in profile.reasons[0]
    mode_fleet.rules = NovaRules(attaches_mdev=True, attaches_unmanaged=True)
    (profile,) = mode_fleet.forecast(change, profiles=(uuid,)).profiles
    assert profile.result is ForecastResult.GAINS


def test_forecast_mode_that_does_not_exist_is_refused(
    mode_fleet: ForecastFleet,
) -> None:
    (device,) = mode_fleet.list_devices(HOST)
    with pytest.raises(ModeRefused, match='Its modes: a, b'):
        mode_fleet.forecast(HardwareChange(device, 'z'))


def test_forecast_mode_of_outdated_inventory_is_refused(
    mode_fleet: ForecastFleet,
) -> None:
    store(mode_fleet, ModeAgents.AFTER)
    (device,) = mode_fleet.list_devices(HOST)
    with pytest.raises(ModeRefused, match='present inventory'):
        mode_fleet.forecast(HardwareChange(device, 'b'))


def test_forecast_mode_of_silent_host_is_refused(mode_fleet: ForecastFleet) -> None:
    class SilentAgents(ModeAgents):
        def list_modes(
            self, context: RequestContext, host: str
        ) -> tuple[DeviceModes, ...]:
            raise HostAway(host=host)

    mode_fleet.agents = SilentAgents()
    with pytest.raises(HostAway):
        mode_fleet.forecast(HardwareChange(mode_fleet.list_devices(HOST)[0], 'b'))


def test_forecast_mode_of_used_device_names_arqs(mode_fleet: ForecastFleet) -> None:
    (arq,) = add_arqs(mode_fleet.database, 1)
    key = ModeAgents.BEFORE.root.handles[0].key
    claim = update(AttachHandle).where(AttachHandle.key == key).values(arq_uuid=arq)
    mode_fleet.database.write(lambda session: session.execute(claim))
    (device,) = mode_fleet.database.read(devices.list_devices, Query(detailed=True))
    effect = mode_fleet.forecast(HardwareChange(device.uuid, 'b')).effects[0]
    assert arq in effect.warnings[0]
