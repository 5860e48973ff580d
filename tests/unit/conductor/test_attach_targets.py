# SPDX-License-Identifier: Apache-2.0
"""Accelerators that are not for the guest are bound, and Nova attaches the others."""

import pytest

from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import State
from tests.fakes.rows import owners
from tests.unit.conductor.test_companions import USER, computing

VM = {'resources:PGPU': '1'}
HOST = {**VM, 'accel:attach_target': 'host'}
NONE = {**VM, 'accel:attach_target': 'none'}


@pytest.mark.parametrize('other', [HOST, NONE])
def test_nova_sees_what_is_for_the_guest_and_hears_of_the_other(
    database: Database, other: dict[str, str]
) -> None:
    with computing(database, other, VM) as compute:
        compute.tell(compute.bind(handles=2))
        assert owners(database) == sorted(compute.uuids)
        assert [arq.uuid for arq in compute.listed()] == compute.uuids[1:]
        assert compute.tell() == compute.uuids[:1]


@pytest.mark.parametrize('only', [HOST, NONE])
def test_a_server_with_nothing_for_the_guest_is_not_a_failure_to_nova(
    database: Database, only: dict[str, str]
) -> None:
    with computing(database, only, only) as compute:
        compute.tell(compute.bind(handles=2))
        shown = compute.listed()
        assert [arq.uuid for arq in shown] == compute.uuids
        assert {arq.state for arq in shown} == {State.BOUND}
        assert compute.tell() == []


def test_whoever_is_no_service_sees_all(database: Database) -> None:
    with computing(database, HOST, VM) as compute:
        compute.tell(compute.bind(handles=2))
        assert len(compute.listed(USER)) == 2
