# SPDX-License-Identifier: Apache-2.0
"""What an operator has loaded, and what keeps him from it."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.conductor.programming import (
    ProgramHandler,
    Programming,
    Waiting,
)
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle
from cyborg_lite.exceptions import (
    BitstreamRefused,
    CyborgError,
    DeployableInUse,
    DeployableNotFound,
    DriverError,
    HandlesContended,
    LoadingFailed,
)
from cyborg_lite.model.bitstreams import FUNCTION
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.jobs import Kind
from cyborg_lite.rpc.context import of_daemon
from tests.fakes.bitstream_files import (
    IMAGE_ID,
    OTHER_FUNCTION,
    image,
)
from tests.fakes.fpga import HOST, fpga_card
from tests.fakes.fpga_cloud import (
    BY_ID,
    Cloud,
    attributes,
)


@pytest.fixture
def cloud(database: Database) -> Cloud:
    cloud = Cloud(database)
    cloud.plug(fpga_card())
    return cloud


@dataclass
class Console:
    """What the conductor offers to an operator, with a runner at work."""

    cloud: Cloud
    runner: JobRunner
    programming: Programming

    def program(self, image_id: str = IMAGE_ID) -> DeployableRecord:
        uuid = self.cloud.record().uuid
        return self.programming.program(of_daemon(), uuid, image_id)


@pytest.fixture
def console(cloud: Cloud) -> Iterator[Console]:
    waiting = Waiting()
    handler = ProgramHandler(cloud.database, cloud.loader, waiting)
    owner = owner_of_process(30)
    runner = JobRunner(cloud.database, {Kind.PROGRAM: handler}, owner, workers=1)
    yield Console(
        cloud, runner, Programming(cloud.database, cloud.loader, runner, waiting)
    )
    runner.stop()


def test_an_operator_gets_the_deployable_as_it_is_now(console: Console) -> None:
    record = console.program()
    assert record.bitstream_id == IMAGE_ID
    assert attributes(record)[FUNCTION] == OTHER_FUNCTION
    assert Kind.PROGRAM not in console.cloud.kinds()


def test_after_a_load_the_card_can_be_bound(console: Console) -> None:
    console.program()
    job = console.cloud.accepted({})
    console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['Bound']


def test_what_is_bound_is_not_programmed(console: Console) -> None:
    console.cloud.binder.run(console.cloud.accepted({}))
    with pytest.raises(DeployableInUse):
        console.program()
    assert console.cloud.agents.loads == []


def test_what_is_being_programmed_is_neither_bound_nor_programmed(
    console: Console,
) -> None:
    marked = update(AttachHandle).values(preparing=True)
    console.cloud.database.write(lambda session: session.execute(marked))
    with pytest.raises(DeployableInUse):
        console.program()
    job = console.cloud.accepted({})
    with pytest.raises(HandlesContended):
        console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['BindStarted']


def test_an_unknown_deployable_is_not_found(console: Console) -> None:
    with pytest.raises(DeployableNotFound):
        console.programming.program(of_daemon(), str(uuid4()), IMAGE_ID)


def test_an_image_that_does_not_fit_is_refused_at_once(console: Console) -> None:
    console.cloud.images.all[IMAGE_ID] = image(properties={'board': 'u250'})
    with pytest.raises(BitstreamRefused, match='board u250'):
        console.program()
    assert console.cloud.kinds() <= {Kind.PLACEMENT_SYNC}


@pytest.mark.parametrize(
    ('failure', 'reserved'),
    [
        (DriverError(reason='fpgaconf is not installed'), 0),
        (LoadingFailed(image=IMAGE_ID, reason='CRC error'), 1),
    ],
)
def test_what_the_host_says_reaches_the_operator(
    failure: CyborgError, reserved: int, console: Console
) -> None:
    console.cloud.agents.refusal = failure
    with pytest.raises(type(failure)) as caught:
        console.program()
    assert caught.value.text == failure.text
    assert console.cloud.row()[1] == reserved
    # It is not kept from being bound, where it is fit for that.
    assert Kind.PROGRAM not in console.cloud.kinds()
    console.cloud.agents.refusal = None
    assert console.program().bitstream_id == IMAGE_ID


def test_a_shell_waits_until_nothing_on_the_card_is_bound(
    database: Database,
) -> None:
    cloud = Cloud(database)
    cloud.plug(fpga_card(regions=2))
    cloud.images.all[IMAGE_ID] = image(properties={'shell_id': None})
    names = [f'{HOST}_0000:5e:00.0_region{number}' for number in range(2)]
    cloud.binder.run(cloud.accepted({}, names[1]))
    runner = JobRunner(database, {}, owner_of_process(30), workers=1)
    programming = Programming(database, cloud.loader, runner, Waiting())
    with pytest.raises(DeployableInUse):
        programming.program(of_daemon(), cloud.record(names[0]).uuid, IMAGE_ID)
    job = cloud.accepted(BY_ID, names[0])
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.agents.loads == []
