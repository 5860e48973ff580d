# SPDX-License-Identifier: Apache-2.0
"""Unclean units: withheld after a use, until cleaning or an operator frees them."""

from dataclasses import asdict, replace

import pytest
from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device
from cyborg_lite.db.devices import cleanings
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.arqs import NoFreeHandle
from cyborg_lite.errors.devices import CleaningRefused, DeviceNotFound
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.devices.cleaning import (
    LOGIC_STEP,
    CleanProgressState,
    CleanStep,
    CleanWork,
    UnitSelection,
)
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.jobs import Job
from tests.builders.bound_arqs import bind_arqs
from tests.builders.reports import card, report, with_root
from tests.builders.rows import HOST, PROJECT, add_arqs, add_profile
from tests.builders.table_rows import change_rows, read_column
from tests.builders.unclean_units import (
    build_progress,
    count_clean_jobs,
    count_reserved,
    lease_clean_job,
    read_units,
    release_unit,
)

SUCCEEDED, FAILED = CleanProgressState.SUCCEEDED, CleanProgressState.FAILED
RUNNING = CleanProgressState.RUNNING
UNKNOWN = '8d3cf1c3-0000-4000-8000-000000000000'


def begin(database: Database) -> tuple[Job, CleanWork]:
    """Lease the cleaning job and return it with its work."""
    job = lease_clean_job(database)
    work = database.write(cleanings.begin_cleaning, job)
    assert work is not None
    return job, work


def clean(database: Database) -> None:
    """End the cleaning job with success."""
    job, work = begin(database)
    database.write(cleanings.record_clean, job, work, build_progress(SUCCEEDED))


def fail_clean(database: Database) -> None:
    """End the cleaning job with a failure of its first step."""
    job, work = begin(database)
    progress = build_progress(FAILED, reason='medium error')
    database.write(cleanings.record_clean_failure, job, work, 'medium error', progress)


def bind(database: Database, device: str) -> None:
    """Bind a new ARQ to the provider of the device.

    :raises NoFreeHandle: the unit is withheld
    :raises UnitsBeingCleaned: the unit is being cleaned
    """
    of_device = select(Deployable.rp_uuid).join(Device).where(Device.uuid == device)
    (provider,) = read_column(database, of_device)
    bind_arqs(database, add_arqs(database, 1), provider or '')


# --- after a use ----------------------------------------------------------------------


def test_report_without_dirty_unit_keeps_it(database: Database) -> None:
    """A host that withholds a drive must not lose the state of its unit."""
    handle = replace(card(1).root.handles[0], cleaning=CleaningPolicy.ALWAYS)
    device = with_root(card(1), handles=(handle,))
    database.write(reports.store_report, report(device))
    assert count_clean_jobs(database) == 1
    assert count_reserved(database) == [1]
    database.write(reports.store_report, report(device))
    (unit,) = database.read(cleanings.list_unclean_units)
    assert (unit.hostname, unit.unit, unit.state) == (HOST, handle.key, 'dirty')
    database.write(reports.store_report, report(device))
    clean(database)
    assert count_reserved(database) == [0]


def leave_logic(database: Database) -> str:
    """End a cleaning run that leaves the logic of a region; return the device."""
    device = release_unit(database)
    job, work = begin(database)
    steps = (CleanStep(LOGIC_STEP, 'the record of what the region contains'),)
    progress = replace(build_progress(SUCCEEDED), steps=steps)
    database.write(cleanings.record_clean, job, work, progress)
    return device


def test_logic_of_last_user_needs_a_bitstream(database: Database) -> None:
    add_profile(database, [{'resources:FPGA': '1', 'accel:bitstream_id': UNKNOWN}])
    device = leave_logic(database)
    assert read_units(database, device)[0].state == 'needs_bitstream'
    assert count_reserved(database) == [0]
    with pytest.raises(NoFreeHandle, match='the logic of an earlier instance'):
        bind(database, device)


def test_logic_without_any_bitstream_is_withheld(database: Database) -> None:
    device = leave_logic(database)
    (unit,) = read_units(database, device)
    assert (unit.state, 'blank_bitstream' in unit.reason) == ('clean_failed', True)
    assert count_reserved(database) == [1]
    database.write(cleanings.accept_units, UnitSelection(device), 'operator')
    assert read_units(database, device)[0].state == 'clean'


def test_dirty_unit_gone_is_deleted_when_accepted(database: Database) -> None:
    device = release_unit(database, missing=True)
    assert [unit.state for unit in read_units(database, device)] == ['dirty']
    fail_clean(database)
    database.write(cleanings.accept_units, UnitSelection(device), 'Jo')
    assert read_units(database, device) == []


# --- cleaning jobs --------------------------------------------------------------------


def test_clean_result_of_lost_lease_is_refused(database: Database) -> None:
    device = release_unit(database)
    job, work = begin(database)
    database.write(cleanings.record_progress, job, work, build_progress(RUNNING), 0)
    successor, _ = begin(database)
    with pytest.raises(JobLost):
        database.write(cleanings.record_clean, job, work, build_progress(SUCCEEDED))
    with pytest.raises(JobLost):
        database.write(cleanings.begin_cleaning, job)
    assert [unit.state for unit in read_units(database, device)] == ['dirty']
    assert database.write(cleanings.begin_cleaning, successor) is not None


def test_clean_job_without_dirty_unit_does_nothing(database: Database) -> None:
    release_unit(database)
    job = lease_clean_job(database)
    change_rows(database, AttachHandle, clean_state='used')
    assert database.write(cleanings.begin_cleaning, job) is None


# --- operators ------------------------------------------------------------------------


def test_accepted_unit_has_record_with_name(database: Database) -> None:
    device = release_unit(database, CleaningPolicy.ONE_TIME)
    assert database.write(cleanings.accept_units, UnitSelection(device), 'Jo') == 1
    (record,) = database.read(cleanings.list_cleanings, device).cleanings
    assert (record.state, record.actor, record.steps) == ('accepted', 'Jo', ())
    assert PROJECT not in str(asdict(record))
    bind(database, device)


def test_decision_on_other_unit_is_refused(database: Database) -> None:
    device = release_unit(database)
    for decide in (cleanings.retry_cleaning, cleanings.accept_units):
        with pytest.raises(CleaningRefused, match='is dirty'):
            database.write(decide, UnitSelection(device), 'Jo')
        with pytest.raises(CleaningRefused, match='no such unit'):
            database.write(decide, UnitSelection(device, 'x'), 'Jo')
        with pytest.raises(DeviceNotFound):
            database.write(decide, UnitSelection(UNKNOWN), 'Jo')


def test_reset_of_free_unit_cleans_it(database: Database) -> None:
    device = release_unit(database)
    clean(database)
    assert database.write(cleanings.reset_units, UnitSelection(device), 'Jo') == 1
    assert [unit.state for unit in read_units(database, device)] == ['dirty']
    begin(database)
    (record, _) = database.read(cleanings.list_cleanings, device).cleanings
    assert (record.state, record.actor) == ('running', 'Jo')


def test_reset_is_refused_while_arq_has_unit(database: Database) -> None:
    device = release_unit(database)
    clean(database)
    bind(database, device)
    with pytest.raises(CleaningRefused, match='ARQs use it'):
        database.write(cleanings.reset_units, UnitSelection(device), 'Jo')
    # A name does not take the unit from its ARQ.
    forced = UnitSelection(device, name='Jo')
    with pytest.raises(CleaningRefused, match='none is free'):
        database.write(cleanings.reset_units, forced, 'Jo')


def test_reset_of_unit_without_steps_is_refused(database: Database) -> None:
    device = release_unit(database, CleaningPolicy.NEVER)
    with pytest.raises(CleaningRefused, match='none is free and has cleaning steps'):
        database.write(cleanings.reset_units, UnitSelection(device), 'Jo')


# --- resets that health rules require ---


def request(database: Database, device: str) -> bool:
    return database.write(cleanings.request_reset, Device.uuid == device)


def test_idle_device_is_reset_at_once(database: Database) -> None:
    device = release_unit(database)
    clean(database)
    assert request(database, device)
    assert [unit.state for unit in read_units(database, device)] == ['dirty']
    assert count_clean_jobs(database) == 1


def test_device_in_use_is_reset_after_its_use(database: Database) -> None:
    device = release_unit(database)
    clean(database)
    bind(database, device)
    assert request(database, device)
    assert count_clean_jobs(database) == 0


def test_failed_unit_waits_for_operator_despite_rule(database: Database) -> None:
    device = release_unit(database)
    fail_clean(database)
    assert request(database, device)
    assert [unit.state for unit in read_units(database, device)] == ['clean_failed']


def test_device_without_cleaning_steps_has_no_reset(database: Database) -> None:
    device = release_unit(database, CleaningPolicy.NEVER)
    assert not request(database, device)
