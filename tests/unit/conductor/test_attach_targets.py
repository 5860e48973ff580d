# SPDX-License-Identifier: Apache-2.0
"""Lists of ARQs for Nova if some ARQs are not for the guest."""

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.arqs import State
from tests.builders.rows import owners
from tests.doubles.nova_compute import USER, create_compute

VM = {'resources:PGPU': '1'}
HOST = {**VM, 'accel:attach_target': 'host'}
NONE = {**VM, 'accel:attach_target': 'none'}


@pytest.mark.parametrize('hidden', [HOST, NONE])
def test_list_hides_host_arq_and_sends_event(
    database: Database, hidden: dict[str, str]
) -> None:
    with create_compute(database, hidden, VM) as compute:
        compute.send_events(compute.bind(handles=2))
        assert owners(database) == sorted(compute.uuids)
        assert [arq.uuid for arq in compute.list_arqs()] == compute.uuids[1:]
        assert compute.send_events() == compute.uuids[:1]


@pytest.mark.parametrize('only', [HOST, NONE])
def test_list_only_host_arqs_returns_all(
    database: Database, only: dict[str, str]
) -> None:
    with create_compute(database, only, only) as compute:
        compute.send_events(compute.bind(handles=2))
        listed = compute.list_arqs()
        assert [arq.uuid for arq in listed] == compute.uuids
        assert {arq.state for arq in listed} == {State.BOUND}
        assert compute.send_events() == []


def test_list_as_user_returns_host_arq(database: Database) -> None:
    with create_compute(database, HOST, VM) as compute:
        compute.send_events(compute.bind(handles=2))
        assert len(compute.list_arqs(USER)) == 2
