# SPDX-License-Identifier: Apache-2.0
"""Explanations of device profiles, and the calls of Placement for them."""

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, now
from cyborg_lite.db.devices import cleanings
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.profiles import DeviceProfileNotFound, ImpossibleDeviceProfile
from cyborg_lite.model.capacity.explanations import FitResult, HostFit, ReasonCode
from cyborg_lite.model.devices.cleaning import CleanProgressState
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.traits import OWNER_NOVA
from tests.builders.alternatives import SHARED, create_profile
from tests.builders.provider_rows import add_device
from tests.builders.rows import HOST, add_handles
from tests.builders.unclean_units import (
    build_progress,
    lease_clean_job,
    read_units,
    release_unit,
)
from tests.doubles.placement import FakePlacement

ONE = {'resources:PGPU': '1'}


@pytest.fixture
def placement(database: Database) -> FakePlacement:
    """Return a Placement with two hosts of one card each."""
    placement = FakePlacement()
    for host in ('compute-1', 'compute-2'):
        placement.create_provider(str(uuid4()), host, None)
        add_handles(database, add_device(database, host, '0000:3b:00.0'), 1)
        PlacementSync(database, placement).sync(host)
    placement.calls.clear()
    return placement


@pytest.fixture
def explanations(database: Database, placement: FakePlacement) -> ExplanationService:
    return ExplanationService(database, placement)


def profile(database: Database, *groups: dict[str, str], **fields: bool) -> str:
    new_profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
    changed = replace(new_profile, **fields)  # type: ignore[arg-type]  # some fields
    return database.write(profiles.create_profile, changed).uuid


def test_explain_hostname_limits_hosts(
    database: Database, explanations: ExplanationService
) -> None:
    uuid = profile(database, ONE)
    explanation = explanations.explain(None, uuid, None)
    assert [fit.hostname for fit in explanation.hosts] == ['compute-1', 'compute-2']
    (host,) = explanations.explain(None, uuid, 'compute-2').hosts
    assert (host.hostname, host.fits) == ('compute-2', True)


def test_explain_equal_groups_are_queried_once(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    explanations.explain(None, profile(database, ONE, ONE, ONE), None)
    assert placement.calls == ['GET /allocation_candidates']
    placement.calls.clear()
    marked = {**ONE, 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
    explanations.explain(None, profile(database, marked, marked), None)
    assert len(placement.calls) == 2


def test_explain_disabled_profile_adds_warning(
    database: Database, explanations: ExplanationService
) -> None:
    explanation = explanations.explain(
        None, profile(database, ONE, enabled=False), None
    )
    assert explanation.result is FitResult.FITS
    assert [reason.code for reason in explanation.warnings] == [ReasonCode.DISABLED]


def test_explain_quantity_of_old_microversion_adds_warning(
    database: Database, explanations: ExplanationService
) -> None:
    uuid = profile(database, {**ONE, 'accel:video_ram': '2GB'})
    (warning,) = explanations.explain(None, uuid, None).warnings
    assert (warning.code, warning.group) == (ReasonCode.NOT_CONSIDERED, 0)


def test_explain_hidden_profile_raises(
    database: Database, explanations: ExplanationService
) -> None:
    hidden = profile(database, ONE, is_public=False)
    with pytest.raises(DeviceProfileNotFound):
        explanations.explain('project', hidden, None)
    with pytest.raises(DeviceProfileNotFound):
        explanations.explain(None, str(uuid4()), None)


def test_check_without_traits_does_not_call_placement(
    placement: FakePlacement, explanations: ExplanationService
) -> None:
    explanations.check(DeviceProfile(str(uuid4()), 'p', None, (ONE, ONE), now()))
    greedy = (ONE, {'resources:PGPU': '2'})
    with pytest.raises(ImpossibleDeviceProfile, match=r'groups\[1\]'):
        explanations.check(DeviceProfile(str(uuid4()), 'p', None, greedy, now()))
    assert placement.calls == []


def test_explain_names_unclean_units_of_provider(database: Database) -> None:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    device = release_unit(database)
    PlacementSync(database, placement).sync(HOST)
    service = ExplanationService(database, placement)
    uuid = profile(database, ONE)

    def explain() -> str:
        explanation = service.explain(None, uuid, None)
        assert explanation.result is FitResult.NOT_NOW
        ((reason,),) = [group.reasons for group in explanation.hosts[0].groups]
        assert reason.code is ReasonCode.NO_FREE_UNIT
        return reason.text

    (unit,) = read_units(database, device)
    assert f'Unit {unit.key} waits for its clean.' in explain()
    job = lease_clean_job(database)
    work = database.write(cleanings.begin_cleaning, job)
    assert work is not None
    running = build_progress(CleanProgressState.RUNNING, 'erase')
    database.write(cleanings.record_progress, job, work, running, 0)
    assert f'Unit {unit.key} is being cleaned, at step 2/2 verify.' in explain()
    job = lease_clean_job(database)
    database.write(cleanings.record_clean_failure, job, work, 'medium error', running)
    text = f'Unit {unit.key} is clean_failed and waits for an operator: medium error.'
    assert text in explain()


def test_explain_mdev_of_old_nova_has_reason(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    mdevs = update(AttachHandle).values(type='MDEV')
    database.write(lambda session: session.execute(mdevs))

    def explain(**keys: str) -> HostFit:
        uuid = profile(database, {**ONE, **keys})
        (host,) = explanations.explain(None, uuid, HOST).hosts
        return host

    host = explain()
    assert not host.fits
    codes = [reason.code for reason in host.groups[0].reasons]
    assert codes == [ReasonCode.MDEV_NOT_ATTACHED]
    assert len(placement.calls) == 2
    assert explain(**{'accel:attach_target': 'host'}).fits
    root = placement.find_provider_by_name(HOST)
    assert root is not None
    # Nova 34 sets the trait.
    placement.providers[root.uuid].traits = frozenset({OWNER_NOVA})
    assert explain().fits


def test_explain_unmanaged_function_has_reason(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    unmanaged = update(AttachHandle).values(managed=False)
    database.write(lambda session: session.execute(unmanaged))
    (host,) = explanations.explain(None, profile(database, ONE), HOST).hosts
    (reason,) = host.groups[0].reasons
    assert reason.code == ReasonCode.UNMANAGED_NOT_ATTACHED
    assert len(placement.calls) == 1


# --- capacity ---


def test_count_capacity_sums_hosts(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    uuid = profile(database, ONE)
    capacity = explanations.count_capacity(None, uuid, None)
    assert [(host.hostname, host.servers) for host in capacity.hosts] == [
        ('compute-1', 1),
        ('compute-2', 1),
    ]
    assert (capacity.servers, capacity.is_exact, capacity.choice) == (2, True, ())
    (host,) = explanations.count_capacity(None, uuid, 'compute-2').hosts
    assert host.hostname == 'compute-2'


def test_count_capacity_sends_one_request_per_distinct_group(
    database: Database, placement: FakePlacement, explanations: ExplanationService
) -> None:
    marked = {**ONE, 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
    uuid = profile(database, ONE, ONE, marked, marked)
    explanations.count_capacity(None, uuid, None)
    assert placement.calls == ['GET /allocation_candidates'] * 2


@pytest.mark.parametrize(
    ('options', 'expected'),
    [
        ((ONE, SHARED), ((0,), 2, True)),
        ((SHARED, ONE), ((1,), 2, True)),
        ((SHARED, {'resources:PGPU': '2'}), ((0,), 0, False)),
    ],
)
def test_count_capacity_counts_all_alternatives(
    database: Database,
    placement: FakePlacement,
    options: tuple[dict[str, str], ...],
    expected: tuple[tuple[int, ...], int, bool],
) -> None:
    uuid = create_profile(database, options).uuid
    capacity = ExplanationService(database, placement).count_capacity(None, uuid, None)
    assert (capacity.choice, capacity.servers, capacity.is_exact) == expected
    assert placement.calls == ['GET /allocation_candidates'] * 2
