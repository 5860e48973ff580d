# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage device impact``."""

import json
from collections.abc import Callable

import pytest
from sqlalchemy import update

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.arqs import binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.rows import HOST, OWNER, PROJECT, add_arqs, add_card, bindings

Out = pytest.CaptureFixture[str]
INSTANCE = '5e7a1c11-0000-4000-8000-000000000001'


@pytest.fixture
def options(write_config: Callable[..., list[str]]) -> list[str]:
    return [*write_config(), 'device', 'impact']


@pytest.fixture
def arq(database: Database) -> str:
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 1), INSTANCE)
    job = database.write(binding.accept_bind, requested, ANY_PROJECT, BIND_JOB, OWNER)
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    return uuids[0]


def lose_cards(database: Database) -> None:
    values = {'health': Health.GONE, 'health_reason': 'it was not detected any more'}
    database.write(lambda session: session.execute(update(Device).values(**values)))


def test_impact_lists_lost_devices_by_default(
    options: list[str], database: Database, arq: str, capsys: Out
) -> None:
    assert main.main(options) == 0
    assert capsys.readouterr().out == 'No ARQ is affected.\n'
    lose_cards(database)
    assert main.main(options) == 1
    header, line = capsys.readouterr().out.splitlines()
    columns = ['HOST', 'DEVICE', 'MODEL', 'INSTANCE', 'PROJECT', 'ARQ', 'LOST']
    assert header.split() == columns
    for text in (HOST, INSTANCE, PROJECT, arq, 'gone: it was not detected any more'):
        assert text in line


def test_impact_of_host_lists_working_devices(
    options: list[str], arq: str, capsys: Out
) -> None:
    assert main.main([*options, '--host', HOST, '--format', 'json']) == 0
    (impact,) = json.loads(capsys.readouterr().out)
    assert (impact['arq_uuid'], impact['loss']) == (arq, '')
    keys = 'hostname address device_uuid model handle arq_uuid instance_uuid'
    assert set(impact) == {*keys.split(), 'project_id', 'device_profile_name', 'loss'}
    address = impact['address']
    assert main.main([*options, address]) == 0
    assert INSTANCE in capsys.readouterr().out


def test_impact_of_unknown_device_fails(
    options: list[str], arq: str, capsys: Out
) -> None:
    assert main.main([*options, '0000:ff:00.0']) == main.FAILURE
    assert '0000:ff:00.0' in capsys.readouterr().err
