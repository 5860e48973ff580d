# SPDX-License-Identifier: Apache-2.0
"""A bind that names a bitstream is Bound once that is loaded, or not at all."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from cyborg_lite.conductor.binding import BindHandler
from cyborg_lite.db import clock
from cyborg_lite.db.engine import Database
from cyborg_lite.db.providers import providers_of_host
from cyborg_lite.exceptions import (
    DriverError,
    HostAway,
    LoadingFailed,
    RemoteError,
    ServiceUnavailable,
)
from cyborg_lite.model.bitstreams import FUNCTION
from cyborg_lite.model.jobs import Kind
from tests.fakes.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    OTHER_FUNCTION,
    image,
)
from tests.fakes.fpga import FACTORY, HOST, fpga_card, function_trait
from tests.fakes.fpga_cloud import BY_ID, OTHER_IMAGE, Cloud, attributes
from tests.unit.conductor.test_binding import RULES


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
def test_what_a_profile_names_is_loaded_before_it_is_bound(
    group: dict[str, str], cloud: Cloud
) -> None:
    job = cloud.accepted(group)
    event = cloud.binder.run(job)
    assert event is not None
    assert event.payload['succeeded'] is True
    assert cloud.states(job) == ['Bound']
    (order,) = cloud.agents.loads
    assert (order.address, order.part) == ('0000:5e:00.0', '')
    assert order.bitstream.image_id == IMAGE_ID


def test_the_old_function_goes_and_the_new_one_comes(cloud: Cloud) -> None:
    cloud.binder.run(cloud.accepted(BY_ID))
    record = cloud.record()
    assert record.bitstream_id == IMAGE_ID
    assert attributes(record)[FUNCTION] == OTHER_FUNCTION
    traits, _ = cloud.row()
    assert function_trait(OTHER_FUNCTION) in traits
    assert function_trait(FACTORY) not in traits
    assert Kind.PLACEMENT_SYNC in cloud.kinds()


def test_a_host_is_told_when_a_load_was_ordered(cloud: Cloud) -> None:
    """By which it knows an order that comes too late."""
    before = cloud.database.read(clock.moment)
    cloud.binder.run(cloud.accepted(BY_ID))
    (order,) = cloud.agents.loads
    assert before <= order.ordered_at <= cloud.database.read(clock.moment)


def test_placement_shows_the_function_before_anybody_hears_that_it_is_bound(
    cloud: Cloud,
) -> None:
    job, seen = cloud.accepted(BY_ID), []

    def place(hostname: str) -> None:
        (row,) = cloud.database.read(providers_of_host, hostname)
        seen.append((hostname, row.traits, cloud.states(job)))

    cloud.binder_that(place).run(job)
    ((hostname, traits, states),) = seen
    assert hostname == HOST
    assert function_trait(OTHER_FUNCTION) in traits
    assert states == ['BindStarted']
    assert cloud.states(job) == ['Bound']


def test_a_bind_waits_for_placement_that_is_away(cloud: Cloud) -> None:
    job, away = cloud.accepted(BY_ID), [ServiceUnavailable(what='Placement')]

    def place(hostname: str) -> None:
        if away:
            raise away.pop()

    binder = cloud.binder_that(place)
    with pytest.raises(ServiceUnavailable):
        binder.run(job)
    assert cloud.states(job) == ['BindStarted']
    binder.run(cloud.take_over())
    assert cloud.states(job) == ['Bound']
    assert len(cloud.agents.loads) == 1


def test_a_region_is_reserved_before_its_bind_has_failed(cloud: Cloud) -> None:
    job, seen = cloud.accepted(BY_ID), []
    cloud.agents.cannot_load = LoadingFailed(image=IMAGE_ID, reason='CRC error')

    def place(hostname: str) -> None:
        seen.append((cloud.told(), cloud.states(job)))
        # Nobody waits for it.
        raise ServiceUnavailable(what='Placement')

    cloud.binder_that(place).run(job)
    assert seen == [((1, 1), ['BindStarted'])]
    assert cloud.states(job) == ['BindFailed']


def test_what_placement_refuses_keeps_nobody_from_his_card(cloud: Cloud) -> None:
    refused = RemoteError(service='Placement', status=400, reason='of another card')
    job = cloud.accepted(BY_ID)
    cloud.binder_that(Mock(side_effect=refused)).run(job)
    assert cloud.states(job) == ['Bound']


def test_what_the_image_says_of_a_driver_is_shown_and_stays(cloud: Cloud) -> None:
    cloud.binder.run(cloud.accepted(BY_ID))
    cloud.report()
    said = attributes(cloud.record())
    assert said['bitstream_name'] == 'nlb-0'
    assert said['bitstream_driver_path'] == '/lib/modules/nlb.ko'
    assert cloud.record().bitstream_id == IMAGE_ID


def test_what_is_loaded_already_is_not_loaded_again(cloud: Cloud) -> None:
    first = cloud.accepted(BY_ID)
    cloud.binder.run(first)
    cloud.release(first)
    second = cloud.accepted(BY_ID)
    cloud.binder.run(second)
    assert cloud.states(second) == ['Bound']
    assert len(cloud.agents.loads) == 1


def test_a_profile_that_names_nothing_takes_the_card_as_it_is(cloud: Cloud) -> None:
    job = cloud.accepted({})
    cloud.binder.run(job)
    assert cloud.states(job) == ['Bound']
    assert cloud.agents.loads == []


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
        ({'hash_value': None}, 'Its os_hash_value is no sha512 digest.'),
        ({'properties': {'bs-name': '../../etc/passwd'}}, 'Its bs-name'),
        ({'properties': {'topology': '[' * 100}}, 'Its topology: it is nested'),
    ],
)
def test_an_image_that_does_not_do_never_reaches_the_host(
    changes: dict[str, Any], reason: str, cloud: Cloud
) -> None:
    cloud.images.all[IMAGE_ID] = image(**changes)
    job = cloud.accepted(BY_ID)
    event = cloud.binder.run(job)
    assert event is not None
    assert event.payload['succeeded'] is False
    assert cloud.states(job) == ['BindFailed']
    (said,) = cloud.reasons(job)
    assert said is not None
    assert reason in said
    assert 'program' not in {call[0] for call in cloud.agents.calls}
    assert cloud.row()[1] == 0


def test_an_image_that_is_not_there_fails_the_bind(cloud: Cloud) -> None:
    cloud.images.all.clear()
    job = cloud.accepted(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']


def test_a_name_of_two_images_is_not_guessed_at(cloud: Cloud) -> None:
    cloud.images.all[OTHER_IMAGE] = image(id=OTHER_IMAGE)
    job = cloud.accepted({'accel:bitstream_name': 'nlb-0'})
    cloud.binder.run(job)
    (said,) = cloud.reasons(job)
    assert said is not None
    assert IMAGE_ID in said
    assert OTHER_IMAGE in said
    assert cloud.agents.loads == []


def test_an_image_and_a_function_in_one_profile_fail_the_bind(cloud: Cloud) -> None:
    job = cloud.accepted({**BY_ID, 'accel:function_id': OTHER_FUNCTION})
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.agents.loads == []


def test_without_glance_nothing_that_wants_a_bitstream_is_bound(cloud: Cloud) -> None:
    binder = BindHandler(cloud.database, cloud.agents, cloud.consumers, RULES)
    job = cloud.accepted(BY_ID)
    binder.run(job)
    assert cloud.states(job) == ['BindFailed']


def test_a_glance_that_is_away_puts_the_bind_off(cloud: Cloud) -> None:
    cloud.images.away = True
    job = cloud.accepted(BY_ID)
    with pytest.raises(ServiceUnavailable):
        cloud.binder.run(job)
    assert cloud.states(job) == ['BindStarted']


def test_a_failed_load_closes_the_region_and_fails_the_bind(cloud: Cloud) -> None:
    cloud.agents.refusal = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    job = cloud.accepted(BY_ID)
    event = cloud.binder.run(job)
    assert event is not None
    assert cloud.states(job) == ['BindFailed']
    assert cloud.reasons(job) == {f'Loading bitstream {IMAGE_ID} failed: CRC error'}
    assert cloud.row()[1] == 1
    assert cloud.record().bitstream_id is None
    assert Kind.PLACEMENT_SYNC in cloud.kinds()


def test_a_load_that_changed_nothing_leaves_the_region_open(cloud: Cloud) -> None:
    cloud.agents.refusal = DriverError(reason='nothing changed')
    job = cloud.accepted(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.row()[1] == 0


def test_when_one_cannot_be_loaded_all_of_the_instance_fail(cloud: Cloud) -> None:
    cloud.plug(fpga_card(0x5E), fpga_card(0x5F))
    cloud.images.all[IMAGE_ID] = image(size=0)
    names = [f'{HOST}_0000:{bus}:00.0' for bus in ('5e', '5f')]
    job = cloud.accepted(BY_ID, *names)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed'] * 2


def test_after_a_crash_the_successor_loads_it(cloud: Cloud) -> None:
    cloud.agents.away = {HOST}
    job = cloud.accepted(BY_ID)
    with pytest.raises(HostAway):
        cloud.binder.run(job)
    cloud.agents.away = set()
    cloud.binder.run(cloud.take_over())
    assert cloud.states(job) == ['Bound']
    assert len(cloud.agents.loads) == 1


def test_a_region_that_moved_with_its_card_is_named_as_it_is_now(
    database: Database,
) -> None:
    cloud = Cloud(database)
    cloud.plug(replace(fpga_card(0x5E, regions=2), hardware_id='serial-1'))
    name = f'{HOST}_0000:5e:00.0_region1'
    cloud.agents.cards.clear()
    cloud.plug(replace(fpga_card(0x7A, regions=2), hardware_id='serial-1'))
    job = cloud.accepted(BY_ID, name)
    cloud.binder.run(job)
    (order,) = cloud.agents.loads
    assert (order.address, order.part) == ('0000:7a:00.0', '_region1')
    assert cloud.states(job) == ['Bound']


def test_two_regions_of_a_card_are_loaded_apart(database: Database) -> None:
    cloud = Cloud(database)
    cloud.plug(fpga_card(regions=2))
    names = [f'{HOST}_0000:5e:00.0_region{number}' for number in range(2)]
    cloud.binder.run(cloud.accepted(BY_ID, names[0]))
    traits = [cloud.row(name)[0] for name in names]
    assert function_trait(OTHER_FUNCTION) in traits[0]
    assert function_trait(FACTORY) in traits[1]
