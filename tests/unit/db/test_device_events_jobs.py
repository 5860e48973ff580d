# SPDX-License-Identifier: Apache-2.0
"""Events of devices that jobs store: cleaning, modes and programming."""

from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import cleanings, deployables, devices, modes
from cyborg_lite.db.devices import events as device_events
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.devices.cleaning import CleanProgressState, UnitSelection
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import JobType, ModePayload, NewJob, ProgramPayload
from cyborg_lite.model.queries import Query
from tests.builders.bitstream_files import IMAGE_ID, bitstream
from tests.builders.fpga_reports import HOST, fpga_card
from tests.builders.reports import card
from tests.builders.rows import OWNER, PROJECT
from tests.builders.unclean_units import build_progress, lease_clean_job, release_unit

Events = list[tuple[str, str, str]]


def list_events(database: Database, uuid: str) -> Events:
    """Return kind, value and reason of the events, the oldest first."""
    events = database.read(device_events.list_events, uuid)
    return [(event.kind, event.value, event.reason) for event in reversed(events)]


def test_failed_and_repeated_clean_are_events(database: Database) -> None:
    device = release_unit(database)
    for state in (CleanProgressState.FAILED, CleanProgressState.SUCCEEDED):
        job = lease_clean_job(database)
        work = database.write(cleanings.begin_cleaning, job)
        assert work is not None
        # A second attempt of the job is no second clean.
        assert database.write(cleanings.begin_cleaning, job) is not None
        progress = build_progress(state)
        if state is CleanProgressState.SUCCEEDED:
            database.write(cleanings.record_clean, job, work, progress)
            continue
        failure = 'medium error'
        database.write(cleanings.record_clean_failure, job, work, failure, progress)
        database.write(cleanings.retry_cleaning, UnitSelection(device), 'Jo')
    events = database.read(device_events.list_events, device)
    assert work is not None
    assert [kind for kind, _, _ in list_events(database, device)] == [
        'cleaning-started',
        'cleaning-failed',
        'cleaning-started',
        'cleaned',
    ]
    assert {event.unit for event in events} == {work.order.handle.key}
    assert ('cleaning-failed', '', 'medium error') in list_events(database, device)


def test_accepted_unit_is_event_with_name(database: Database) -> None:
    device = release_unit(database)
    job = lease_clean_job(database)
    work = database.write(cleanings.begin_cleaning, job)
    assert work is not None
    database.write(cleanings.record_clean_failure, job, work, 'medium error')
    database.write(cleanings.accept_units, UnitSelection(device), 'Jo')
    assert list_events(database, device)[-1] == (
        'unit-accepted',
        '',
        'Accepted by Jo.',
    )


def test_ends_of_mode_changes_are_events(database: Database) -> None:
    host = HostReport(HOST, 'boot', (card(0x3B),))
    database.write(reports.store_report, host)
    (device,) = database.read(devices.list_devices, Query())
    payload = ModePayload(device.uuid, 'fast')
    for failure in ('It broke.', ''):
        database.write(modes.add_change, payload, None)
        (job,) = database.write(queue.lease_jobs, OWNER, 10, (JobType.MODE,))
        database.write(modes.hold_device, job, payload)
        database.write(modes.end_change, job, failure)
    assert list_events(database, device.uuid)[1:] == [
        ('mode-change-failed', 'fast', 'It broke.'),
        ('mode-changed', 'fast', ''),
    ]


def test_programming_is_started_and_ended(database: Database) -> None:
    host = HostReport(HOST, 'boot', (fpga_card(),))
    database.write(reports.store_report, host)
    (device,) = database.read(devices.list_devices, Query())
    (stored,) = database.read(deployables.list_deployables, Query())
    region = database.read(programming.find_region, stored.uuid)
    payload = ProgramPayload(region.uuid, IMAGE_ID, is_shell=False).to_json()
    for failure in ('CRC error', None):
        job = NewJob(JobType.PROGRAM, payload)
        load = database.write(programming.begin_load, region, job, OWNER, PROJECT)
        if failure is None:
            database.write(programming.record_load, region, bitstream(), fpga_card())
        database.write(programming.end_load, region, load, failure)
    assert list_events(database, device.uuid)[1:] == [
        ('programming-started', IMAGE_ID, ''),
        ('programming-failed', '', 'CRC error'),
        ('programming-started', IMAGE_ID, ''),
        ('programmed', IMAGE_ID, ''),
    ]
