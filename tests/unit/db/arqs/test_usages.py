# SPDX-License-Identifier: Apache-2.0
"""Use of units: periods of binds, sums over a time, and ARQs of earlier releases."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select

from cyborg_lite.db.arqs import arqs, release, usages
from cyborg_lite.db.core.clock import read_now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, UsagePeriod
from cyborg_lite.errors.arqs import UsageTooLarge
from cyborg_lite.model.arqs.usages import UnitUsage, UsageQuery
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import PROJECT, add_arqs, add_profile
from tests.builders.table_rows import change_rows, count_rows, execute, read_column

HOUR = 3_600_000
EVER = UsageQuery(0, 2**60)
# Any: columns of various types.
Row = dict[str, Any]


def test_use_that_clock_sets_back_is_not_negative(database: Database) -> None:
    uuids = create_bound_arqs(database, 1)
    change_rows(database, Arq, bound_at=database.read(read_now_ms) + HOUR)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    length = select(UsagePeriod.ended_at - UsagePeriod.started_at)
    assert read_column(database, length) == [0]


def test_sum_usages_includes_ongoing_use(database: Database) -> None:
    create_bound_arqs(database, 2)
    now = database.read(read_now_ms)
    change_rows(database, Arq, bound_at=now - HOUR)
    report = database.read(usages.sum_usages, UsageQuery(0, now))
    (usage,) = report.usages
    assert (usage.project_id, usage.resource_class) == (PROJECT, 'PGPU')
    assert (usage.milliseconds, usage.unit_hours) == (2 * HOUR, 2.0)
    # A query into the future counts until now.
    future = database.read(usages.sum_usages, UsageQuery(now - HOUR, 2**60))
    assert now <= future.end < now + 60_000
    assert database.read(usages.sum_usages, UsageQuery(2**59, 2**60)).usages == ()


def test_delete_unused_arq_stores_no_period(database: Database) -> None:
    uuids = add_arqs(database, 2)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert count_rows(database, UsagePeriod) == 0


def test_companion_arq_is_no_unit(database: Database) -> None:
    group = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
    name = add_profile(database, [group])
    assert len(database.write(arqs.create_arqs, name, PROJECT)) == 2
    change_rows(database, Arq, bound_at=0)
    (usage,) = database.read(usages.sum_usages, UsageQuery(0, HOUR)).usages
    assert usage.milliseconds == HOUR


def test_sum_usages_too_many_sums_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usages, 'MAX_ROWS', 1)
    for project in ('p1', 'p2'):
        execute(database, insert(UsagePeriod), [period(project, 'PGPU', 'a', 1, 2)])
    with pytest.raises(UsageTooLarge):
        database.read(usages.sum_usages, EVER)
    query = UsageQuery(0, 2**60, 'p1')
    assert len(database.read(usages.sum_usages, query).usages) == 1


def test_delete_old_periods_spares_recent_periods(database: Database) -> None:
    now = database.read(read_now_ms)
    rows = [period('p', 'PGPU', 'a', 0, now - age * HOUR) for age in (3, 1)]
    execute(database, insert(UsagePeriod), rows)
    assert database.write(usages.delete_old_periods, 2 * HOUR // 1000) == 1
    assert count_rows(database, UsagePeriod) == 1


def period(
    project: str, resource_class: str, profile: str, start: int, end: int
) -> Row:
    return {
        'arq_uuid': 'a',
        'project_id': project,
        'resource_class': resource_class,
        'device_profile_name': profile,
        'started_at': start,
        'ended_at': end,
    }


TIMES = st.integers(0, 1000)
PERIODS = st.lists(
    st.builds(
        lambda project, kind, profile, ends: period(
            project, kind, profile, min(ends), max(ends)
        ),
        st.sampled_from(['p1', 'p2']),
        st.sampled_from(['PGPU', 'VGPU']),
        st.sampled_from(['small', 'large']),
        st.tuples(TIMES, TIMES),
    ),
    max_size=12,
)


def expected_sums(rows: list[Row], query: UsageQuery) -> set[UnitUsage]:
    """Count the milliseconds of the time one by one."""
    sums: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = row['project_id'], row['resource_class'], row['device_profile_name']
        if query.project_id in (None, row['project_id']):
            times = range(row['started_at'], row['ended_at'])
            count = sum(query.start <= moment < query.end for moment in times)
            sums[key] = sums.get(key, 0) + count
    return {UnitUsage(*key, total) for key, total in sums.items() if total}


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(PERIODS, TIMES, TIMES, st.sampled_from([None, 'p1']))
def test_sum_usages_equals_plain_count(
    database: Database, rows: list[Row], start: int, end: int, project: str | None
) -> None:
    execute(database, delete(UsagePeriod))
    if rows:
        execute(database, insert(UsagePeriod), rows)
    query = UsageQuery(start, end, project)
    report = database.read(usages.sum_usages, query)
    assert {usage for usage in report.usages if usage.milliseconds} == expected_sums(
        rows, query
    )
