# SPDX-License-Identifier: Apache-2.0
"""Samples of the API reference are compared with the answers of the service.

One sequence of calls uses every operation of the API document. With
``CYBORG_LITE_WRITE_SAMPLES=1`` in the environment the samples are written.
"""

import difflib
import os
import sqlite3
from contextlib import closing
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.builders.api_samples import FOLDER, Recorder
from tests.builders.bitstream_files import gbs, image
from tests.servers.glance import RealGlance, real_glance
from tests.servers.keystone import keystone
from tests.servers.keystone_cloud import KeystoneCloud, cloud
from tests.servers.stack import NOVA, USER, Instance, expect

__all__ = ['cloud', 'keystone', 'real_glance']

# The document is long and generated.
WITHOUT_SAMPLE: Final = {'show_api_document'}

PROFILES: Final = '/v2/device_profiles'
ARQS: Final = '/v2/accelerator_requests'
ADVICE: Final = 'run this test with CYBORG_LITE_WRITE_SAMPLES=1, then tox -e genapi'


@pytest.fixture(scope='module')
def recorder(cloud: KeystoneCloud, real_glance: RealGlance) -> Recorder:
    """Return the recorder after all calls."""
    recorder = Recorder(cloud)
    recorder.ask('list_versions', '/')
    recorder.ask('show_version', '/v2')
    _hardware(recorder, cloud)
    _profiles(recorder)
    _requests(recorder, cloud)
    _bitstreams(recorder, cloud, real_glance)
    recorder.ask('list_services', '/v2/services')
    _operations(recorder, cloud)
    _forget_host(recorder, cloud)
    if os.environ.get('CYBORG_LITE_WRITE_SAMPLES'):
        FOLDER.mkdir(exist_ok=True)
        for operation, text in recorder.format_samples().items():
            (FOLDER / f'{operation}.json').write_text(text)
    return recorder


def _operations(recorder: Recorder, cloud: KeystoneCloud) -> None:
    """Request an operation, and retry and cancel others of the database."""
    recorder.ask('create_operation', '/v2/operations', {'kind': 'audit'})
    # No conductor runs jobs of this type.
    uuid, job = str(uuid4()), str(uuid4())
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database, database:
        database.execute(
            'INSERT INTO operations (uuid, kind, subject_type, subject_id, parameters, '
            'state, progress, steps, reason, jobs, pending, outcome, created_at) '
            "VALUES (?, 'connect', '', '', '{}', 'failed', 0, '[]', "
            "'The drive is busy.', 1, 0, 'failed', '2026-01-02 03:04:05.678901')",
            (uuid,),
        )
        database.execute(
            'INSERT INTO jobs (uuid, kind, payload, rerun_requested, state, step, '
            'attempts, run_after, lease, last_error, created_at) '
            "VALUES (?, 'example', '{}', 0, 'failed', '', 3, 0, 0, "
            "'The drive is busy.', 0)",
            (job,),
        )
        database.execute(
            'INSERT INTO job_operations (operation_uuid, job_uuid, job_kind) '
            "VALUES (?, ?, 'example')",
            (uuid, job),
        )
    path = f'/v2/operations/{uuid}'
    recorder.ask('list_operations', '/v2/operations?kind=connect&state=failed')
    recorder.ask('show_attention', '/v2/attention?kind=failed_job')
    for action in ('retry', 'cancel'):
        recorder.ask(f'{action}_operation', f'{path}/{action}')


def _forget_host(recorder: Recorder, cloud: KeystoneCloud) -> None:
    """Delete a host that is gone, and a conductor; their rows are written."""
    service = str(uuid4())
    recorder.ask('list_hosts', '/v2/hosts')
    recorder.ask('show_host', f'/v2/hosts/{cloud.host}')
    status = {'op': 'replace', 'path': '/status', 'value': 'enabled'}
    recorder.ask('update_host', f'/v2/hosts/{cloud.host}', [status])
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database, database:
        database.executemany(
            'INSERT INTO services (uuid, binary, host, version, state, started_at, '
            'heartbeat_at, audited_at, machine, last_event, report_number) '
            'SELECT ?, ?, ?, version, ?, '
            'started_at, heartbeat_at, audited_at, machine, 0, 0 FROM services '
            "WHERE binary = 'cyborg-lite-agent'",
            [
                (service, 'cyborg-lite-conductor', 'gone-controller', 'down'),
                (str(uuid4()), 'cyborg-lite-agent', 'gone-host', 'down'),
            ],
        )
    recorder.ask('delete_host', '/v2/hosts/gone-host?drain=true')
    path = f'/v2/services/{service}'
    recorder.ask('delete_service', path)


def _hardware(recorder: Recorder, cloud: KeystoneCloud) -> None:
    ask = recorder.ask
    device = ask('list_devices', '/v2/devices')['devices'][0]['uuid']
    path = f'/v2/devices/{device}'
    ask('show_device', path)
    reason = {'op': 'add', 'path': '/reason', 'value': 'The fan is changed.'}
    status = {'op': 'replace', 'path': '/status', 'value': 'maintaining'}
    ask('update_device', path, [status, reason])
    ask('list_device_modes', f'{path}/modes')
    ask('list_device_events', f'{path}/events')
    _configuration(recorder, cloud, device)
    _cleanings(recorder, cloud, f'{path}/cleanings')
    ask('disable_device', f'{path}/disable')
    ask('enable_device', f'{path}/enable')
    deployables = ask('list_deployables', '/v2/deployables')['deployables']
    ask('show_deployable', f'/v2/deployables/{deployables[0]["uuid"]}')
    body = {'deployable_id': 1, 'key': 'rack', 'value': '7'}
    created = ask('create_attribute', '/v2/attributes', body)['uuid']
    ask('list_attributes', '/v2/attributes?deployable_id=1')
    ask('show_attribute', f'/v2/attributes/{created}')
    ask('delete_attribute', f'/v2/attributes/{created}')


def _configuration(recorder: Recorder, cloud: KeystoneCloud, device: str) -> None:
    """Show a change whose record is written into the database."""
    columns = {
        'uuid': '0f6f3b2e-7a52-4c39-8f0e-5d1f6c1f7a90',
        'device_id': 1,
        'hardware_set': 'nvidia',
        'settings': '{"vgpus": 4}',
        'held_ids': '[]',
        'state': 'succeeded',
        'phase': 'setup',
        'tasks': 2,
        'log': 'teardown: Unload the driver: changed\nsetup: Load the driver: changed',
        'reason': '',
        'actor': 'admin',
        'created_at': '2026-02-28 12:00:00.000000',
        'finished_at': '2026-02-28 12:01:00.000000',
    }
    names, marks = ', '.join(columns), ', '.join('?' * len(columns))
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database, database:
        insert = f'INSERT INTO reconfigurations ({names}) VALUES ({marks})'
        database.execute(insert, tuple(columns.values()))
    path = f'/v2/devices/{device}/configuration'
    recorder.ask('show_device_configuration', path)


def _cleanings(recorder: Recorder, cloud: KeystoneCloud, path: str) -> None:
    """Decide about a unit whose state is written into the database."""
    unit = _set_clean_state(cloud, 'used')
    accept = {'name': 'R. Jones', 'unit': unit}
    recorder.ask('accept_device_cleanings', f'{path}/accept', accept)
    recorder.ask('list_device_cleanings', path)
    _set_clean_state(cloud, 'used')
    recorder.ask('retry_device_cleanings', f'{path}/retry', {'unit': unit})
    _set_clean_state(cloud, 'used', 'after-use')
    reset_path = path.replace('cleanings', 'reset')
    recorder.ask('reset_device', reset_path, {'unit': unit})
    # The driver has no cleaning steps.
    _set_clean_state(cloud, 'clean')


def _set_clean_state(cloud: KeystoneCloud, state: str, policy: str = 'never') -> str:
    """Set the state of the first unit; return its key."""
    with closing(sqlite3.connect(cloud.directory / 'db.sqlite')) as database, database:
        ((number, key),) = database.execute(
            'SELECT id, key FROM attach_handles ORDER BY id LIMIT 1'
        ).fetchall()
        values = state, policy, number
        database.execute(
            'UPDATE attach_handles SET clean_state = ?, cleaning = ? WHERE id = ?',
            values,
        )
    return str(key)


def _profiles(recorder: Recorder) -> None:
    def ask(operation: str, below: str, body: Any = None) -> Any:
        return recorder.ask(operation, f'{PROFILES}{below}', body)

    group = {'resources:FPGA': '1', 'trait:CUSTOM_FAKE_DEVICE': 'required'}
    profiles = [{'name': 'fpga', 'description': 'One unit.', 'groups': [group]}]
    ask('create_device_profile', '', profiles)
    ask('list_device_profiles', '?name=fpga')
    ask('show_device_profile', '/fpga')
    ask('explain_device_profile', '/fpga/explain')
    ask('show_device_profile_capacity', '/fpga/capacity')
    renamed = [{'op': 'replace', 'path': '/is_public', 'value': False}]
    ask('update_device_profile', '/fpga', renamed)
    ask('grant_device_profile_access', '/fpga/access', {'projects': ['a' * 32]})
    ask('list_device_profile_access', '/fpga/access')
    ask('revoke_device_profile_access', f'/fpga/access?value={"a" * 32}')
    ask('delete_device_profile', '/fpga')
    for name in ('small', 'large'):
        ask('create_device_profile', '', [{**profiles[0], 'name': name}])
    ask('delete_device_profiles', '?value=small,large')
    ask('create_device_profile', '', profiles)


def _requests(recorder: Recorder, cloud: KeystoneCloud) -> None:
    create = {'device_profile_name': 'fpga'}
    (created,) = recorder.ask('create_accelerator_request', ARQS, create)['arqs']
    uuid = created['uuid']
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 1}, arqs=[uuid])
    instance.allocate()
    binding = {
        '/hostname': cloud.host,
        '/device_rp_uuid': instance.provider,
        '/instance_uuid': instance.uuid,
    }
    bind = [{'path': k, 'op': 'add', 'value': v} for k, v in binding.items()]
    unbind = [{'path': path, 'op': 'remove'} for path in binding]

    def as_nova(operation: str, path: str, body: Any = None) -> None:
        recorder.ask(operation, path, body, persona=NOVA)

    as_nova('bind_accelerator_requests', ARQS, {uuid: bind})
    cloud.until(instance.is_resolved, 'Nova receives the event')
    by_instance = f'{ARQS}?instance={instance.uuid}'
    recorder.ask('list_accelerator_requests', f'{by_instance}&bind_state=resolved')
    recorder.ask('show_accelerator_request', f'{ARQS}/{uuid}')
    recorder.ask('list_accelerator_request_events', f'{ARQS}/{uuid}/events')
    topology = f'/v2/hosts/{cloud.host}/topology'
    recorder.ask('show_host_topology', topology)
    recorder.ask('list_usages', '/v2/usages')
    recorder.ask('list_limits', '/v2/limits')
    # A tenant reads whether units are free, and no name of a host.
    types = recorder.ask('list_device_types', '/v2/device_types', persona=USER)
    assert [item['device_profiles'] for item in types['device_types']] == [['fpga']]
    assert cloud.host not in str(types)
    path = f'{ARQS}/{uuid}'
    as_nova('bind_accelerator_request', path, {uuid: unbind})
    as_nova('delete_accelerator_request', path)
    as_nova('delete_accelerator_requests', by_instance)
    recorder.ask(
        'list_instance_events', f'/v2/instance_events?instance={instance.uuid}'
    )


def _bitstreams(
    recorder: Recorder, cloud: KeystoneCloud, real_glance: RealGlance
) -> None:
    # One Glance serves many tests, so the function must be unique.
    function = str(uuid4())
    properties = {**image().properties, 'function_uuid': function}
    content = gbs(function=function.replace('-', ''))
    uploaded = real_glance.upload(content, image().tags, properties)
    recorder.ask('list_bitstreams', f'/v2/bitstreams?function={function}')
    deployables = expect(cloud.api().ask('GET', '/v2/deployables'), 200)['deployables']
    (card,) = (
        schema_name['uuid']
        for schema_name in deployables
        if schema_name['num_accelerators'] == 1
    )
    path = f'/v2/deployables/{card}/program'
    value = [{'image_uuid': uploaded}]
    program = [{'path': '/program', 'op': 'replace', 'value': value}]
    job = recorder.ask('program_deployable', path, program)

    def is_finished() -> bool:
        recorder.ask('show_job', f'/v2/jobs/{job["uuid"]}')
        path = f'/v2/operations/{job["uuid"]}?wait=5'
        return bool(recorder.ask('show_operation', path)['progress'] == 100)

    cloud.until(is_finished, 'the image is loaded')
    # The state of the job depends on the speed of the machine.
    body = recorder.samples['show_job']['answer']['body']
    body |= {'state': 'running', 'step': 'checking', 'progress': 10}
    body['updated_at'] = body['created_at']
    repeated = 'update_deployable_program'
    recorder.ask(repeated, f'{path}/{card}', program)


def test_api_samples_cover_every_operation(
    cloud: KeystoneCloud, recorder: Recorder
) -> None:
    headers = {'OpenStack-API-Version': 'accelerator latest'}
    answer = cloud.api(headers).ask('GET', '/v2/openapi.json')
    operations = {
        operation['operationId']
        for methods in expect(answer, 200)['paths'].values()
        for operation in methods.values()
    }
    assert set(recorder.samples) == operations - WITHOUT_SAMPLE
    assert {file.stem for file in FOLDER.glob('*')} == set(recorder.samples), ADVICE


def test_api_samples_equal_answers_of_service(recorder: Recorder) -> None:
    drifted = [
        line
        for operation, text in recorder.format_samples().items()
        for line in difflib.unified_diff(
            (FOLDER / f'{operation}.json').read_text().splitlines(),
            text.splitlines(),
            f'{operation}.json',
            'the service',
            lineterm='',
        )
    ]
    assert not drifted, '\n'.join([ADVICE, *drifted])
