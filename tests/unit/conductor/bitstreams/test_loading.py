# SPDX-License-Identifier: Apache-2.0
"""Binds that request a bitstream."""

from typing import Any
from unittest.mock import Mock

import pytest

from cyborg_lite.conductor.arqs.binding import BindHandler
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.bitstreams import LoadingFailed
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from tests.builders.bind_rules import RULES
from tests.builders.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    OTHER_FUNCTION,
    image,
)
from tests.builders.fpga_reports import FACTORY, HOST, fpga_card, function_trait
from tests.doubles.fpga_cloud import BY_ID, OTHER_IMAGE, Cloud, attributes


@pytest.fixture
def cloud(database: Database) -> Cloud:
    cloud = Cloud(database)
    cloud.plug(fpga_card())
    return cloud


@pytest.mark.parametrize(
    'group',
    [
        BY_ID,
        {'accel:bitstream_name': 'nlb-0'},
        {'accel:function_id': OTHER_FUNCTION},
        {'accel:function_name': 'loopback'},
    ],
)
def test_bind_loads_requested_bitstream(group: dict[str, str], cloud: Cloud) -> None:
    job = cloud.accept_bind(group)
    event = cloud.binder.run(job)
    assert event is not None
    assert event.payload['succeeded'] is True
    assert cloud.states(job) == ['Bound']
    (order,) = cloud.agents.loads
    assert (order.address, order.region_suffix) == ('0000:5e:00.0', '')
    assert order.bitstream.image_id == IMAGE_ID


def test_bind_load_order_has_timestamp(cloud: Cloud) -> None:
    """The agent ignores an order that is older than the last one."""
    before = cloud.database.read(clock.read_now_ms)
    cloud.binder.run(cloud.accept_bind(BY_ID))
    (order,) = cloud.agents.loads
    assert before <= order.ordered_at <= cloud.database.read(clock.read_now_ms)


def test_bind_load_placement_down_is_retried(cloud: Cloud) -> None:
    job, errors = cloud.accept_bind(BY_ID), [ServiceUnavailable(what='Placement')]

    def place(hostname: str) -> None:
        if errors:
            raise errors.pop()

    binder = cloud.binder_that(place)
    with pytest.raises(ServiceUnavailable):
        binder.run(job)
    assert cloud.states(job) == ['BindStarted']
    binder.run(cloud.take_over())
    assert cloud.states(job) == ['Bound']
    assert len(cloud.agents.loads) == 1


def test_bind_load_fails_reserves_region_first(cloud: Cloud) -> None:
    job, calls = cloud.accept_bind(BY_ID), []
    cloud.agents.cannot_load = LoadingFailed(image=IMAGE_ID, reason='CRC error')

    def place(hostname: str) -> None:
        calls.append((cloud.read_inventory(), cloud.states(job)))
        # The bind fails anyway, so it does not wait for Placement.
        raise ServiceUnavailable(what='Placement')

    cloud.binder_that(place).run(job)
    assert calls == [((1, 1), ['BindStarted'])]
    assert cloud.states(job) == ['BindFailed']


def test_bind_load_placement_rejection_is_ignored(cloud: Cloud) -> None:
    refused = RemoteError(service='Placement', status=400, reason='of another card')
    job = cloud.accept_bind(BY_ID)
    cloud.binder_that(Mock(side_effect=refused)).run(job)
    assert cloud.states(job) == ['Bound']


def test_bind_load_attributes_survive_report(cloud: Cloud) -> None:
    cloud.binder.run(cloud.accept_bind(BY_ID))
    cloud.report()
    reason_text = attributes(cloud.record())
    assert reason_text['bitstream_name'] == 'nlb-0'
    assert reason_text['bitstream_driver_path'] == '/lib/modules/nlb.ko'
    assert cloud.record().bitstream_id == IMAGE_ID


def test_bind_same_bitstream_is_not_loaded_again(cloud: Cloud) -> None:
    first = cloud.accept_bind(BY_ID)
    cloud.binder.run(first)
    cloud.release(first)
    second = cloud.accept_bind(BY_ID)
    cloud.binder.run(second)
    assert cloud.states(second) == ['Bound']
    assert len(cloud.agents.loads) == 1


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'tags': ()}, 'It is not tagged FPGA.'),
        ({'properties': {'vendor': 'xilinx'}}, 'It is for vendor xilinx'),
        ({'properties': {'board': 'u250'}}, 'It is for board u250'),
        ({'properties': {'version': '2.0'}}, 'It is for version 2.0, not 1.1.3.'),
        ({'properties': {'shell_id': 'other'}}, 'It needs shell other'),
        ({'properties': {'region_uuid': 'ab' * 16}}, f'It is for region {"ab" * 16}'),
        ({'properties': {'bs-uuid': None}}, 'It lacks bs-uuid.'),
        ({'size': LARGEST + 1}, 'more than'),
        ({'hash_value': None}, 'Its os_hash_value is not a sha512 digest.'),
        ({'properties': {'bs-name': '../../etc/passwd'}}, 'Its bs-name'),
        ({'properties': {'topology': '[' * 100}}, 'Its topology: it is nested'),
    ],
)
def test_bind_unsuitable_image_fails_without_agent_call(
    changes: dict[str, Any], reason: str, cloud: Cloud
) -> None:
    cloud.images.all[IMAGE_ID] = image(**changes)
    job = cloud.accept_bind(BY_ID)
    event = cloud.binder.run(job)
    assert event is not None
    assert event.payload['succeeded'] is False
    assert cloud.states(job) == ['BindFailed']
    (reason_text,) = cloud.reasons(job)
    assert reason_text is not None
    assert reason in reason_text
    assert 'program' not in {call[0] for call in cloud.agents.calls}
    assert cloud.row()[1] == 0


def test_bind_missing_image_fails(cloud: Cloud) -> None:
    cloud.images.all.clear()
    job = cloud.accept_bind(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']


def test_bind_ambiguous_name_fails(cloud: Cloud) -> None:
    cloud.images.all[OTHER_IMAGE] = image(id=OTHER_IMAGE)
    job = cloud.accept_bind({'accel:bitstream_name': 'nlb-0'})
    cloud.binder.run(job)
    (reason_text,) = cloud.reasons(job)
    assert reason_text is not None
    assert IMAGE_ID in reason_text
    assert OTHER_IMAGE in reason_text
    assert cloud.agents.loads == []


def test_bind_image_and_function_fails(cloud: Cloud) -> None:
    job = cloud.accept_bind({**BY_ID, 'accel:function_id': OTHER_FUNCTION})
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.agents.loads == []


def test_bind_bitstream_without_glance_fails(cloud: Cloud) -> None:
    binder = BindHandler(cloud.database, cloud.agents, cloud.consumers, RULES)
    job = cloud.accept_bind(BY_ID)
    binder.run(job)
    assert cloud.states(job) == ['BindFailed']


def test_bind_glance_down_raises(cloud: Cloud) -> None:
    cloud.images.is_down = True
    job = cloud.accept_bind(BY_ID)
    with pytest.raises(ServiceUnavailable):
        cloud.binder.run(job)
    assert cloud.states(job) == ['BindStarted']


def test_bind_load_without_change_keeps_region_usable(cloud: Cloud) -> None:
    cloud.agents.refusal = DriverError(reason='nothing changed')
    job = cloud.accept_bind(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.row()[1] == 0


def test_bind_load_changes_one_region(database: Database) -> None:
    cloud = Cloud(database)
    cloud.plug(fpga_card(regions=2))
    names = [f'{HOST}_0000:5e:00.0_region{number}' for number in range(2)]
    cloud.binder.run(cloud.accept_bind(BY_ID, names[0]))
    traits = [cloud.row(name)[0] for name in names]
    assert function_trait(OTHER_FUNCTION) in traits[0]
    assert function_trait(FACTORY) in traits[1]
