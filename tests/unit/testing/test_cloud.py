# SPDX-License-Identifier: Apache-2.0
"""Tests of the emulated cloud of one host: bind, delete and crashes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.testing.cloud import Cloud, CrashDatabases, Scenario
from cyborg_lite.testing.crash_points import CrashPoint
from cyborg_lite.testing.driver_checks import ConformanceError
from tests.doubles.file_driver import FileDriver, build_bench


class RefusingDriver(FileDriver):
    """Driver that never releases a handle."""

    def release(self, handle: AllocatedHandle) -> None:
        raise DriverError(reason='of a test')


@pytest.fixture(scope='module')
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashDatabases]:
    with closing(CrashDatabases(tmp_path_factory.mktemp('databases'))) as databases:
        yield databases


def test_bind_and_delete_complete_without_crash(
    databases: CrashDatabases, tmp_path: Path
) -> None:
    cloud = Cloud(Scenario(build_bench()), databases, tmp_path / 'run', CrashPoint())
    uuids = sorted(arq.uuid for arq in cloud.arqs)
    assert len(uuids) == 2
    cloud.bind()
    assert {arq.state for arq in cloud.list_arqs()} == {State.BOUND}
    assert cloud.list_claims() == cloud.list_prepared() == uuids
    assert sorted(event.arq_uuid for event in cloud.nova.events) == uuids
    cloud.delete()
    assert not cloud.list_arqs()
    assert not cloud.list_claims()
    assert not cloud.list_prepared()


@pytest.mark.parametrize('number', [0, 5, 9])
def test_bind_completes_after_crash(
    databases: CrashDatabases, tmp_path: Path, number: int
) -> None:
    crash_point = CrashPoint(number)
    scenario = Scenario(build_bench(), number=1)
    cloud = Cloud(scenario, databases, tmp_path / 'run', crash_point)
    with crash_point.activate():
        cloud.bind()
    assert crash_point.reached == crash_point.points[number]
    assert [arq.state for arq in cloud.list_arqs()] == [State.BOUND]
    assert len(cloud.list_prepared()) == 1


def test_new_cloud_deletes_rows_of_earlier_runs(
    databases: CrashDatabases, tmp_path: Path
) -> None:
    for name in ('first', 'second'):
        scenario = Scenario(build_bench(), number=1)
        cloud = Cloud(scenario, databases, tmp_path / name, CrashPoint())
        assert len(cloud.list_arqs()) == 1


def test_delete_with_endless_job_raises(
    databases: CrashDatabases, tmp_path: Path
) -> None:
    scenario = Scenario(build_bench(RefusingDriver), number=1)
    cloud = Cloud(scenario, databases, tmp_path / 'run', CrashPoint())
    cloud.bind()
    with pytest.raises(
        ConformanceError, match=r'jobs do not end: release: .*of a test'
    ):
        cloud.delete()
