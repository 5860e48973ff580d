# SPDX-License-Identifier: Apache-2.0
"""What a report costs, what it leaves alone, and who is told of it."""

import threading
from dataclasses import replace

from cyborg_lite.db import attributes
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle, Attribute, Deployable, Device, Job
from tests.fakes.cards import HOST, card, host, report, unit, with_parts, without_units
from tests.fakes.statements import statements, writes
from tests.fakes.stored_hosts import (
    hold,
    jobs_of,
    release,
    store,
    table_of,
    uuids_of_all,
)

# --- attributes of admins ---


def test_attributes_that_an_admin_added_survive_reports(database: Database) -> None:
    store(database, report(card(1)))
    [deployable] = table_of(database, Deployable, 'id')
    database.write(attributes.create, int(deployable), 'rack', '7')
    store(database, report(replace(card(1), model='A2')))
    assert table_of(database, Attribute, 'key', 'value')['rack'] == ('7',)


def test_a_driver_may_take_over_an_attribute(database: Database) -> None:
    store(database, report(card(1)))
    [deployable] = table_of(database, Deployable, 'id')
    database.write(attributes.create, int(deployable), 'rack', '7')
    told = replace(card(1).root, attributes={'rack': '8'})
    store(database, report(replace(card(1), root=told)))
    assert table_of(database, Attribute, 'key', 'value', 'reported')['rack'] == (
        '8',
        True,
    )
    store(database, report(card(1)))
    assert 'rack' not in table_of(database, Attribute, 'key')


def test_attributes_go_with_their_deployable(database: Database) -> None:
    store(database, report(card(1)))
    [deployable] = table_of(database, Deployable, 'id')
    database.write(attributes.create, int(deployable), 'rack', '7')
    store(database, report())
    assert table_of(database, Attribute, 'key') == {}


# --- Placement follows ---


def test_one_job_for_placement_is_written_with_the_change(database: Database) -> None:
    store(database, report(card(1)))
    assert jobs_of(database) == [('placement-sync', HOST, {'host': HOST}, 0)]
    store(database, report(card(1), card(2)))
    assert len(jobs_of(database)) == 1


def test_no_job_is_written_for_what_placement_does_not_show(database: Database) -> None:
    store(database, report(card(1)))
    database.write(lambda session: session.query(Job).delete())
    store(database, report(replace(card(1), driver='other')))
    assert jobs_of(database) == []


def test_a_job_is_written_when_something_is_forgotten(database: Database) -> None:
    store(database, report(card(1, serial='s')))
    arqs = hold(database, unit(1, 0).key)
    store(database, report())
    database.write(lambda session: session.query(Job).delete())
    release(database, arqs)
    assert [kind for kind, *_ in jobs_of(database)] == ['placement-sync']


# --- how much it costs ---


def test_the_first_report_of_a_large_host_costs_a_few_statements(
    database: Database,
) -> None:
    with statements(database) as seen:
        store(database, host(64, 16))
    assert len(seen) <= 9
    assert len(table_of(database, AttachHandle, 'uuid')) == 64 * 16


def test_each_level_of_parts_costs_two_more(database: Database) -> None:
    devices = [with_parts(device, 'a', 'b') for device in host(64, 16).devices]
    with statements(database) as seen:
        store(database, report(*devices))
    assert len(seen) <= 11
    assert len(table_of(database, Deployable, 'uuid')) == 64 * 3


def test_one_changed_device_of_many_is_written_alone(database: Database) -> None:
    store(database, host(64, 16))
    *others, last = host(64, 16).devices
    changed = replace(last, health_reason='warm')
    with statements(database) as seen:
        store(database, report(*others, changed))
    assert len(seen) <= 6
    assert [text.split()[1] for text in writes(seen)] == ['INTO', 'devices']


def test_one_handle_that_goes_is_written_alone(database: Database) -> None:
    store(database, host(64, 16))
    before = uuids_of_all(database)
    *others, last = host(64, 16).devices
    key = unit(63, 7).key
    with statements(database) as seen:
        store(database, report(*others, without_units(last, key)))
    # That one, the total of its deployable, the digest, and the job.
    assert len(writes(seen)) == 4
    assert len(before - uuids_of_all(database)) == 1


def test_a_host_that_loses_everything_costs_a_few_statements(
    database: Database,
) -> None:
    store(database, host(64, 16))
    with statements(database) as seen:
        store(database, report())
    assert len(seen) <= 11
    assert uuids_of_all(database) == set()


# --- several conductors ---


def test_reports_of_one_host_by_many_conductors_end_in_one_inventory(
    database: Database,
) -> None:
    together = threading.Barrier(4)
    failures: list[BaseException] = []

    def report_it() -> None:
        together.wait()
        try:
            store(database, host(4, 4))
        except BaseException as error:  # noqa: BLE001  # shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=report_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(table_of(database, Device, 'hardware_id')) == 4
    assert len(table_of(database, AttachHandle, 'uuid')) == 16
