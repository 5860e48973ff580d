# SPDX-License-Identifier: Apache-2.0
"""A release undoes what its bind had loaded, or nobody is given the region."""

import pytest

from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    CyborgError,
    DeviceBusy,
    DeviceGone,
    DriverError,
    HostAway,
    LoadingFailed,
    ServiceUnavailable,
)
from cyborg_lite.model.bitstreams import FUNCTION
from cyborg_lite.model.jobs import Job
from tests.fakes.bitstream_files import IMAGE_ID, OTHER_FUNCTION, gbs, image
from tests.fakes.fpga import FACTORY, HOST, fpga_card, function_trait
from tests.fakes.fpga_cloud import BY_ID, OTHER_IMAGE, Cloud, attributes

THIRD_IMAGE = 'aaaaaaaa-0000-4000-8000-000000000002'
THIRD_FUNCTION = 'cd' * 16


@pytest.fixture
def cloud(database: Database) -> Cloud:
    cloud = Cloud(database)
    cloud.plug(fpga_card())
    return cloud


def add_image(cloud: Cloud, uuid: str, function: str) -> None:
    content = gbs(function=function)
    properties = {'function_uuid': function, 'function_name': None, 'bs-name': 'other'}
    cloud.images.all[uuid] = image(content, id=uuid, properties=properties)


def load_by_hand(cloud: Cloud, image_id: str) -> None:
    region = cloud.region()
    wanted = cloud.loader.image_for(region, image_id)
    cloud.loader.load(region, wanted, (), None)


def bound(cloud: Cloud) -> Job:
    job = cloud.accepted(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['Bound']
    return job


def loaded(cloud: Cloud) -> list[str]:
    return [order.bitstream.image_id for order in cloud.agents.loads]


def test_what_was_loaded_before_is_loaded_again(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    cloud.release(bound(cloud))
    assert loaded(cloud) == [OTHER_IMAGE, IMAGE_ID, OTHER_IMAGE]
    assert cloud.record().bitstream_id == OTHER_IMAGE
    assert attributes(cloud.record())[FUNCTION] == THIRD_FUNCTION
    traits, _ = cloud.row()
    assert function_trait(THIRD_FUNCTION) in traits
    assert function_trait(OTHER_FUNCTION) not in traits
    assert cloud.told() == (1, 0)


def test_nobody_needs_the_image_of_before_any_more(cloud: Cloud) -> None:
    """Its host has it, and what it is was written down when it was checked."""
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    job = bound(cloud)
    cloud.images.all.clear()
    cloud.release(job)
    assert loaded(cloud)[-1] == OTHER_IMAGE
    assert cloud.told() == (1, 0)


def test_what_the_factory_had_loaded_is_looked_for_by_its_function(
    cloud: Cloud,
) -> None:
    add_image(cloud, OTHER_IMAGE, FACTORY)
    cloud.release(bound(cloud))
    assert loaded(cloud) == [IMAGE_ID, OTHER_IMAGE]
    assert attributes(cloud.record())[FUNCTION] == FACTORY


def test_where_nobody_knows_of_what_was_before_it_stays_as_it_is(cloud: Cloud) -> None:
    cloud.release(bound(cloud))
    assert loaded(cloud) == [IMAGE_ID]
    assert cloud.told() == (1, 0)
    again = cloud.accepted({})
    cloud.binder.run(again)
    assert cloud.states(again) == ['Bound']


def test_a_request_that_took_the_card_as_it_was_changes_nothing(cloud: Cloud) -> None:
    load_by_hand(cloud, IMAGE_ID)
    job = cloud.accepted({})
    cloud.binder.run(job)
    cloud.release(job)
    assert loaded(cloud) == [IMAGE_ID]


def test_an_operator_may_have_all_wiped_instead(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, FACTORY)
    add_image(cloud, THIRD_IMAGE, THIRD_FUNCTION)
    cloud.images.all[OTHER_IMAGE] = image(
        id=OTHER_IMAGE, properties={'board': 'another'}
    )
    cloud.wipe_with(OTHER_IMAGE, THIRD_IMAGE)
    load_by_hand(cloud, IMAGE_ID)
    add_image(cloud, IMAGE_ID, OTHER_FUNCTION)
    job = cloud.accepted({'accel:bitstream_id': IMAGE_ID})
    cloud.binder.run(job)
    cloud.release(job)
    # Nothing was changed for that request, so nothing is wiped after it.
    assert loaded(cloud) == [IMAGE_ID]
    load_by_hand(cloud, THIRD_IMAGE)
    cloud.release(bound(cloud))
    assert loaded(cloud) == [IMAGE_ID, THIRD_IMAGE, IMAGE_ID, THIRD_IMAGE]


def test_where_no_default_fits_the_region_is_closed(cloud: Cloud) -> None:
    cloud.wipe_with(OTHER_IMAGE)
    cloud.release(bound(cloud))
    assert cloud.told() == (1, 1)
    assert 'none of the default images fits' in cloud.region().unusable


@pytest.mark.parametrize(
    'failure',
    [
        LoadingFailed(image=OTHER_IMAGE, reason='CRC error'),
        DriverError(reason='fpgaconf is not installed'),
        DeviceGone(address='0000:5e:00.0'),
    ],
)
def test_what_cannot_be_brought_back_closes_the_region(
    failure: CyborgError, cloud: Cloud
) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    job = bound(cloud)
    cloud.agents.cannot_load = failure
    cloud.release(job)
    assert failure.text in cloud.region().unusable
    assert cloud.told() == (1, 1)
    assert cloud.record().bitstream_id is None
    # Whatever its host says meanwhile.
    cloud.report()
    assert cloud.told() == (1, 1)
    refused = cloud.accepted({})
    cloud.binder.run(refused)
    assert cloud.states(refused) == ['BindFailed']
    (reason,) = cloud.reasons(refused)
    assert 'is not usable: What was there before cannot' in str(reason)


def test_what_an_operator_loads_opens_a_closed_region(cloud: Cloud) -> None:
    cloud.wipe_with(OTHER_IMAGE)
    cloud.release(bound(cloud))
    load_by_hand(cloud, IMAGE_ID)
    assert cloud.told() == (1, 0)
    assert len(cloud.agents.loads) == 2


@pytest.mark.parametrize(
    'trouble',
    [
        DeviceBusy(address='0000:5e:00.0', reason='a guest may have it'),
        HostAway(host=HOST),
        ServiceUnavailable(what='Glance'),
    ],
)
def test_what_will_pass_is_waited_for(trouble: CyborgError, cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    job = bound(cloud)
    cloud.agents.cannot_load = trouble
    with pytest.raises(type(trouble)):
        cloud.release(job)
    assert cloud.region().unusable == ''
    cloud.agents.cannot_load = None
    cloud.lapse()
    cloud.clean()
    assert loaded(cloud)[-1] == OTHER_IMAGE
    assert cloud.told() == (1, 0)


def test_after_a_failed_bind_the_region_is_what_it_was(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    cloud.agents.cannot_load = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    job = cloud.accepted(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.told() == (1, 1)
    cloud.agents.cannot_load = None
    cloud.clean()
    assert loaded(cloud) == [OTHER_IMAGE, OTHER_IMAGE]
    assert cloud.told() == (1, 0)
    assert cloud.record().bitstream_id == OTHER_IMAGE


def test_of_two_tries_of_a_bind_the_first_knows_what_was_before(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    cloud.agents.forgets_to_answer = True
    job = cloud.accepted(BY_ID)
    with pytest.raises(HostAway):
        cloud.binder.run(job)
    cloud.report()
    cloud.agents.forgets_to_answer = False
    cloud.binder.run(cloud.take_over())
    assert cloud.states(job) == ['Bound']
    cloud.release(job)
    assert loaded(cloud)[-1] == OTHER_IMAGE


def test_an_old_report_does_not_pass_for_what_is_in_the_region(cloud: Cloud) -> None:
    """It was on its way while the host loaded, and says what was true before."""
    add_image(cloud, OTHER_IMAGE, FACTORY)
    job = bound(cloud)
    late = dict(cloud.agents.cards)
    cloud.agents.cards = {'0000:5e:00.0': fpga_card()}
    cloud.report()
    cloud.agents.cards = late
    cloud.release(job)
    assert loaded(cloud) == [IMAGE_ID, OTHER_IMAGE]
