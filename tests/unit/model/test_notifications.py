# SPDX-License-Identifier: Apache-2.0
"""Notifications that real changes write match their schemas and the samples.

With ``CYBORG_LITE_WRITE_SAMPLES=1`` in the environment the samples are written.
"""

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import jsonschema
import pytest
from sqlalchemy import select, update

from cyborg_lite import codec
from cyborg_lite.db.arqs import arqs, release
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable
from cyborg_lite.db.devices import devices
from cyborg_lite.db.devices.cleanings import accept_units
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import outbox
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.devices.cleaning import UnitSelection
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.jobs import NewJob, ProgramPayload
from cyborg_lite.model.notifications import (
    ArqPayload,
    DevicePayload,
    ProfilePayload,
    UsedPayload,
    format_ms,
)
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.device_profiles import ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.reports import card, report
from tests.builders.rows import OWNER
from tests.servers.databases import create_sqlite_file

FOLDER: Final = Path(__file__).parents[3] / 'doc' / 'notifications'
ADVICE: Final = 'run this test with CYBORG_LITE_WRITE_SAMPLES=1'
ANY: Final = Scope(project_id=None)
SCHEMAS: Final = {
    'accelerator_request': ArqPayload,
    'accelerator_request.used': UsedPayload,
    'device': DevicePayload,
    'device_profile': ProfilePayload,
}

_UUID: Final = re.compile(r'\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b')
_TIME: Final = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00')
_NAME: Final = re.compile(r'profile-[0-9a-f-]{36}')


@pytest.fixture
def payloads(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Make changes; return the last payload of each event type."""
    RequestContext(user_id='u', project_id='p', request_id=f'req-{UUID(int=1)}')
    url = create_sqlite_file(tmp_path / 'db.sqlite')
    database = Database(url, notifies=True)
    _change_arqs(database)
    _change_devices(database)
    written = database.read(outbox.list_oldest, 1000)
    database.close()
    return {item.event_type: dict(item.payload) for item in written}


def _change_arqs(database: Database) -> None:
    _, instance = create_bound_instance(database, 1)
    database.write(release.delete_arqs_of_instance, instance, ANY, None)
    (profile,) = database.read(profiles.list_profiles, Query())
    for name in (profile.name, 'other'):
        copy = dataclasses.replace(profile, uuid=str(UUID(int=7)), name=f'{name}-2')
        change = ProfileChange(fields=('enabled',), enabled=False)
        database.write(profiles.create_profile, copy)
        database.write(profiles.update_profile, copy.uuid, change)
        database.write(profiles.delete_profiles, [copy.uuid])
    bound, second = create_bound_instance(database, 1)
    assert bound
    (arq,) = database.write(arqs.create_arqs, profile.name, 'p' * 32)
    database.write(release.delete_arqs, [arq.uuid], ANY, True, None)
    database.write(release.delete_arqs_of_instance, second, ANY, None)


def _change_devices(database: Database) -> None:
    database.write(reports.store_report, report(card(1)))
    on_host = Query(filters={'hostname': (report().hostname,)})
    ill = dataclasses.replace(
        card(1), health=Health.DEGRADED, health_reason='Two ECC errors.'
    )
    database.write(reports.store_report, report(ill))
    *_, device = database.read(devices.list_devices, on_host)
    uuid = device.uuid
    database.write(devices.set_device_status, uuid, DeviceStatus.MAINTAINING, 'A fan.')
    database.write(device_owners.store_conflicts, {uuid: 'Nova'})
    used = update(AttachHandle).values(clean_state='used')
    database.write(lambda session: session.execute(used))
    database.write(accept_units, UnitSelection(uuid, ''), 'R. Jones')
    deployable = database.read(
        lambda session: session.scalars(select(Deployable.uuid)).all()[-1]
    )
    payload = ProgramPayload(deployable, str(UUID(int=9)), is_shell=False)
    region = database.read(programming.find_region, deployable)
    change = update(AttachHandle).values(arq_uuid=None, preparing=False)
    database.write(lambda session: session.execute(change))
    new = NewJob(OperationKind.PROGRAM, codec.dump(payload))
    job = database.write(programming.begin_load, region, new, OWNER)
    database.write(programming.end_load, region, job, InvalidInput(reason='CRC error'))
    database.write(reports.store_report, report())


def find_schema(event_type: str) -> str:
    """Return the name of the schema of an event type."""
    if event_type in SCHEMAS:
        return event_type
    kind = event_type.partition('.')[0]
    return 'device' if kind in ('cleaning', 'programming') else kind


def format_sample(payload: dict[str, Any]) -> str:
    """Return the payload as text; values that differ in each run are replaced."""
    names: dict[str, str] = {}
    text = json.dumps(payload, indent=2, sort_keys=True)
    text = _NAME.sub('gpu', text)
    text = _TIME.sub('2026-01-02T03:04:05.678+00:00', text)
    text = _UUID.sub(
        lambda match: names.setdefault(match[0], str(UUID(int=len(names) + 1))), text
    )
    return f'{text}\n'


def test_payloads_match_their_schemas(payloads: dict[str, dict[str, Any]]) -> None:
    for event_type, payload in payloads.items():
        name = f'{find_schema(event_type)}.schema.json'
        schema = json.loads((FOLDER / name).read_text())
        jsonschema.validate(payload, schema)
        assert payload['request_id'] == f'req-{UUID(int=1)}'


@pytest.mark.parametrize('name', SCHEMAS)
def test_schema_has_fields_of_payload(name: str) -> None:
    schema = json.loads((FOLDER / f'{name}.schema.json').read_text())
    fields = {field.name for field in dataclasses.fields(SCHEMAS[name])}
    assert set(schema['properties']) == fields | {'request_id'}
    assert set(schema['required']) == fields | {'request_id'}
    assert schema['additionalProperties'] is False


def test_samples_equal_payloads(payloads: dict[str, dict[str, Any]]) -> None:
    texts = {name: format_sample(payload) for name, payload in payloads.items()}
    if os.environ.get('CYBORG_LITE_WRITE_SAMPLES'):
        for name, text in texts.items():
            (FOLDER / f'{name}.json').write_text(text)
    samples = {
        file.stem: file.read_text()
        for file in FOLDER.glob('*.json')
        if not file.stem.endswith('.schema')
    }
    assert samples == texts, ADVICE


def test_payloads_contain_no_handle(payloads: dict[str, dict[str, Any]]) -> None:
    """Neither addresses of functions nor keys of handles reach other services."""
    text = json.dumps(
        [item for name, item in payloads.items() if name.startswith('accelerator')]
    )
    assert 'attach_handle' not in text
    assert '"function"' not in text


def test_format_ms_is_utc_with_milliseconds() -> None:
    assert format_ms(None) is None
    assert format_ms(1_767_322_245_678) == '2026-01-02T02:50:45.678+00:00'
