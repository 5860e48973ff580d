# SPDX-License-Identifier: Apache-2.0
"""Release jobs restore the previous bitstream or mark the region unusable."""

from collections.abc import Sequence

import pytest

from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.bitstreams import LoadingFailed
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.bitstreams.bitstreams import FUNCTION
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    gbs,
    image,
)
from tests.builders.fpga_reports import FACTORY, HOST, fpga_card
from tests.builders.rows import OWNER
from tests.doubles.agents import FakeAgents
from tests.doubles.fpga_cloud import (
    BY_ID,
    OTHER_IMAGE,
    Cloud,
    attributes,
)

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
    bitstream = cloud.loader.find_image(region, image_id)
    cloud.loader.load(region, bitstream, (), None)


def bind(cloud: Cloud) -> Job:
    job = cloud.accept_bind(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['Bound']
    return job


def list_loads(cloud: Cloud) -> list[str]:
    return [order.bitstream.image_id for order in cloud.agents.loads]


def test_release_factory_bitstream_is_found_by_function(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, FACTORY)
    cloud.release(bind(cloud))
    assert list_loads(cloud) == [IMAGE_ID, OTHER_IMAGE]
    assert attributes(cloud.record())[FUNCTION] == FACTORY


def test_release_previous_unknown_leaves_region_unchanged(cloud: Cloud) -> None:
    cloud.release(bind(cloud))
    assert list_loads(cloud) == [IMAGE_ID]
    assert cloud.read_inventory() == (1, 0)
    second_job = cloud.accept_bind({})
    cloud.binder.run(second_job)
    assert cloud.states(second_job) == ['Bound']


def test_release_bind_without_load_loads_nothing(cloud: Cloud) -> None:
    load_by_hand(cloud, IMAGE_ID)
    job = cloud.accept_bind({})
    cloud.binder.run(job)
    cloud.release(job)
    assert list_loads(cloud) == [IMAGE_ID]


def test_release_no_default_fits_marks_unusable(cloud: Cloud) -> None:
    cloud.wipe_with(OTHER_IMAGE)
    cloud.release(bind(cloud))
    assert cloud.read_inventory() == (1, 1)
    assert (
        'no image of [conductor] default_images fits' in cloud.region().unusable_reason
    )


@pytest.mark.parametrize(
    'failure',
    [
        LoadingFailed(image=OTHER_IMAGE, reason='CRC error'),
        DriverError(reason='fpgaconf is not installed'),
        DeviceGone(address='0000:5e:00.0'),
    ],
)
def test_release_load_fails_marks_unusable(failure: CyborgError, cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    job = bind(cloud)
    cloud.agents.cannot_load = failure
    cloud.release(job)
    assert failure.text in cloud.region().unusable_reason
    assert cloud.read_inventory() == (1, 1)
    assert cloud.record().bitstream_id is None
    # A report of the agent does not change that.
    cloud.report()
    assert cloud.read_inventory() == (1, 1)
    refused = cloud.accept_bind({})
    cloud.binder.run(refused)
    assert cloud.states(refused) == ['BindFailed']
    (reason,) = cloud.reasons(refused)
    assert 'is not usable: The previous bitstream cannot' in str(reason)


def test_load_of_operator_clears_unusable(cloud: Cloud) -> None:
    cloud.wipe_with(OTHER_IMAGE)
    cloud.release(bind(cloud))
    load_by_hand(cloud, IMAGE_ID)
    assert cloud.read_inventory() == (1, 0)
    assert len(cloud.agents.loads) == 2


@pytest.mark.parametrize(
    'trouble',
    [
        DeviceBusy(address='0000:5e:00.0', reason='a guest may have it'),
        HostAway(host=HOST),
        ServiceUnavailable(what='Glance'),
    ],
)
def test_release_temporary_failure_is_retried(
    trouble: CyborgError, cloud: Cloud
) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    job = bind(cloud)
    cloud.agents.cannot_load = trouble
    with pytest.raises(type(trouble)):
        cloud.release(job)
    assert cloud.region().unusable_reason == ''
    cloud.agents.cannot_load = None
    cloud.lapse()
    cloud.clean()
    assert list_loads(cloud)[-1] == OTHER_IMAGE
    assert cloud.read_inventory() == (1, 0)


def test_release_that_another_conductor_completed_changes_nothing(cloud: Cloud) -> None:
    """The region has another user when the former owner of the job goes on."""
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    job = bind(cloud)
    cloud.delete_instance(job)
    (late,) = cloud.database.write(queue.lease_jobs, OWNER, 10, [OperationKind.RELEASE])
    agents = SupersededAgents(cloud)
    agents.cards = cloud.agents.cards
    loader = BitstreamLoader(
        cloud.database, agents, BitstreamCatalog(cloud.images, LARGEST)
    )
    with pytest.raises(JobLost):
        ReleaseHandler(cloud.database, agents, loader).run(late)
    assert agents.loads == []
    assert cloud.region().unusable_reason == ''
    assert cloud.record().bitstream_id == IMAGE_ID
    assert cloud.read_inventory() == (1, 0)
    # The release of the present user restores the region.
    cloud.release(agents.jobs[0])
    assert list_loads(cloud)[-1] == OTHER_IMAGE


class SupersededAgents(FakeAgents):
    """Agents whose answer to a release comes after the next bind of the handle."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self._cloud = cloud
        self.jobs: list[Job] = []

    def release(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        self._cloud.lapse()
        self._cloud.clean()
        self.jobs.append(bind(self._cloud))


def test_failed_bind_restores_previous_bitstream(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    cloud.agents.cannot_load = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    job = cloud.accept_bind(BY_ID)
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.read_inventory() == (1, 1)
    cloud.agents.cannot_load = None
    cloud.clean()
    assert list_loads(cloud) == [OTHER_IMAGE, OTHER_IMAGE]
    assert cloud.read_inventory() == (1, 0)
    assert cloud.record().bitstream_id == OTHER_IMAGE


def test_bind_retried_remembers_first_previous_bitstream(cloud: Cloud) -> None:
    add_image(cloud, OTHER_IMAGE, THIRD_FUNCTION)
    load_by_hand(cloud, OTHER_IMAGE)
    cloud.agents.forgets_to_answer = True
    job = cloud.accept_bind(BY_ID)
    with pytest.raises(HostAway):
        cloud.binder.run(job)
    cloud.report()
    cloud.agents.forgets_to_answer = False
    cloud.binder.run(cloud.take_over())
    assert cloud.states(job) == ['Bound']
    cloud.release(job)
    assert list_loads(cloud)[-1] == OTHER_IMAGE


def test_release_after_stale_report_restores_bitstream(cloud: Cloud) -> None:
    """The agent sent the report before the load; it arrives after it."""
    add_image(cloud, OTHER_IMAGE, FACTORY)
    job = bind(cloud)
    late = dict(cloud.agents.cards)
    cloud.agents.cards = {'0000:5e:00.0': fpga_card()}
    cloud.report()
    cloud.agents.cards = late
    cloud.release(job)
    assert list_loads(cloud) == [IMAGE_ID, OTHER_IMAGE]
