# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of what waits for an operator, at the newest microversion."""

from typing import Any

from sqlalchemy import update

from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device, Job
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.attention import KINDS, AttentionKind
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.jobs import NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import HOST, add_profile
from tests.builders.service_rows import add_service_row
from tests.builders.unclean_units import release_unit
from tests.support.api.conversation import MEMBER, Client
from tests.support.sql_statements import statements

REASON = 'The agent of host compute-1 does not answer.'


def change(database: Database, table: Any, **columns: Any) -> None:
    """Change the columns of all rows of a table."""
    database.write(lambda session: session.execute(update(table).values(columns)))


def list_items(client: Client, query: str = '') -> dict[str, Any]:
    """Return one item of each kind."""
    items = client.get(f'/attention{query}').json['attention']
    return {item['kind']: item for item in items}


def test_attention_is_empty_without_problems(newest: Client) -> None:
    create_bound_instance(newest.conductor.database, 1)
    add_service_row(newest.conductor.database, 'compute-1')
    items = newest.get('/attention').json['attention']
    assert {item['severity'] for item in items} <= {'info'}
    assert newest.as_(MEMBER).get('/attention').status == 403


def test_attention_bind_between_attempts_is_late(newest: Client) -> None:
    database = newest.conductor.database
    (uuid,), instance = create_bound_instance(database, 1)
    payload = {'instance_uuid': instance, 'arq_uuids': [uuid], 'provider_uuids': []}
    database.write(queue.add_job, NewJob(OperationKind.BIND, payload))
    (job,) = database.write(queue.lease_jobs, Owner('me', 30_000), 1)
    database.write(queue.postpone_job, job, 30_000, REASON)
    assert 'late_bind' not in list_items(newest)
    change(database, Job, created_at=Job.created_at - 61_000)
    item = list_items(newest)['late_bind']
    assert (item['severity'], item['hostname']) == ('critical', HOST)
    assert (item['subject']['id'], item['reason']) == (instance, REASON)
    assert item['command'].endswith(f'--instance {instance}')


def test_attention_names_unit_arq_host_and_conductor(newest: Client) -> None:
    database = newest.conductor.database
    device = release_unit(database, CleaningPolicy.ONE_TIME)
    (uuid,), _ = create_bound_instance(database, 1)
    handle = update(AttachHandle).where(AttachHandle.arq_uuid == uuid)
    database.write(lambda session: session.execute(handle.values(missing=True)))
    add_service_row(database, 'compute-9', 'down', binary=AGENT)
    conductor = add_service_row(database, 'ctl1', 'down', binary=CONDUCTOR)
    database.write(queue.add_job, NewJob(OperationKind.RECONCILE, {'hostname': HOST}))
    change(database, Job, state='failed', last_error='No such compute node.')
    items = list_items(newest)
    assert items['unclean_unit']['subject']['id'] == device
    assert items['lost_arq']['subject']['id'] == uuid
    assert items['host_down']['hostname'] == 'compute-9'
    assert items['conductor_down']['subject']['id'] == conductor
    assert items['failed_job']['reason'] == 'No such compute node.'
    for kind, item in items.items():
        assert (item['since'] is None) is (
            KINDS[AttentionKind(kind)].severity == 'info'
        )
    severities = [item['severity'] for item in items.values()]
    assert severities == sorted(severities, key=['critical', 'warning', 'info'].index)
    assert list(list_items(newest, '?kind=host_down')) == ['host_down']
    assert list(list_items(newest, '?hostname=compute-9')) == ['host_down']
    assert newest.get('/attention?kind=unknown').status == 400


def test_attention_type_is_sold_out_by_trait(newest: Client) -> None:
    database = newest.conductor.database
    create_bound_instance(database, 1)
    change(database, Deployable, resource_class='VGPU', traits=['CUSTOM_A4'])
    change(database, Arq, device_profile_name='former')
    (uuid,), _ = create_bound_instance(database, 1)
    traits = update(Deployable).where(Deployable.resource_class != 'VGPU')
    values = {'resource_class': 'VGPU', 'traits': ['CUSTOM_A8']}
    database.write(lambda session: session.execute(traits.values(values)))
    free = update(AttachHandle).where(AttachHandle.arq_uuid == uuid)
    database.write(lambda session: session.execute(free.values(arq_uuid=None)))
    names = {
        trait: add_profile(
            database, [{'resources:VGPU': '1', f'trait:{trait}': 'required'}]
        )
        for trait in ('CUSTOM_A4', 'CUSTOM_A8')
    }
    names['PGPU'] = add_profile(database, [{'resources:PGPU': '1'}])
    items = newest.get('/attention').json['attention']
    kinds = {item['subject']['name']: item['kind'] for item in items}
    assert kinds[names['CUSTOM_A4']] == 'type_sold_out'
    assert names['CUSTOM_A8'] not in kinds
    assert kinds[names['PGPU']] == 'unserved_profile'


def test_attention_takes_few_statements_for_any_rows(newest: Client) -> None:
    database = newest.conductor.database
    for _ in range(3):
        create_bound_instance(database, 2)
        release_unit(database)
    for number in range(20):
        add_service_row(database, f'compute-{number}', 'down')
        payload = {'instance_uuid': f'instance-{number}'}
        database.write(queue.add_job, NewJob(OperationKind.BIND, payload))
    change(database, Job, created_at=1)
    change(database, Device, health='failed')
    with statements(database) as sql:
        items = database.read(list_attention)
    assert len(items) > 40
    assert len(sql) <= 15
