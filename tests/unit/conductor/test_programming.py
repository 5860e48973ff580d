# SPDX-License-Identifier: Apache-2.0
"""What an operator has loaded, and what keeps him from it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.programming import (
    ProgramHandler,
    Programming,
    Waiting,
)
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle
from cyborg_lite.exceptions import (
    BitstreamRefused,
    CyborgError,
    DeployableInUse,
    DeployableNotFound,
    DriverError,
    HandlesContended,
    JobNotFound,
    LoadingFailed,
    ServiceUnavailable,
)
from cyborg_lite.model.bitstreams import FUNCTION
from cyborg_lite.model.bitstreams import SHELL as SHELL_KEY
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.inventory import Deployable
from cyborg_lite.model.jobs import Kind
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep
from cyborg_lite.rpc.context import RequestContext, of_daemon
from tests.fakes.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    OTHER_FUNCTION,
    image,
)
from tests.fakes.fpga import HOST, fpga_card
from tests.fakes.fpga_cloud import (
    BY_ID,
    OTHER_IMAGE,
    Cloud,
    attributes,
)
from tests.fakes.rows import OWNER


@pytest.fixture
def cloud(database: Database) -> Cloud:
    cloud = Cloud(database)
    cloud.plug(fpga_card())
    return cloud


ADMIN = RequestContext(roles=['admin'], project_id='a' * 32)


@dataclass
class Console:
    """What the conductor offers to an operator, with a runner at work."""

    cloud: Cloud
    runner: JobRunner
    programming: Programming

    def program(self, image_id: str = IMAGE_ID) -> DeployableRecord:
        uuid = self.cloud.record().uuid
        return self.programming.program(ADMIN, uuid, image_id)

    def start(self) -> ProgramJob:
        uuid = self.cloud.record().uuid
        return self.programming.start(ADMIN, uuid, IMAGE_ID)

    def ended(self, job: ProgramJob) -> ProgramJob:
        """What is shown of it when its thread has ended."""
        self.runner.stop()
        self.runner.start()
        self.runner.wait()
        return self.programming.show(ADMIN, job.uuid)


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


@pytest.fixture
def region(console: Console) -> str:
    """The uuid of the only region of a card that is given as one."""
    card = fpga_card()
    said = card.root.attributes
    below = Deployable(f'{card.root.name}_region0', attributes=said)
    console.cloud.plug(replace(card, root=replace(card.root, parts=(below,))))
    return console.cloud.record(below.name).uuid


def test_to_load_the_only_region_of_a_card_is_to_load_the_card(
    console: Console, region: str
) -> None:
    record = console.programming.program(ADMIN, region, IMAGE_ID)
    assert (record.uuid, record.bitstream_id) == (region, IMAGE_ID)
    assert console.cloud.record().bitstream_id == IMAGE_ID
    # By either name it is there already.
    console.program()
    assert len(console.cloud.agents.loads) == 1


def test_a_card_whose_only_region_failed_is_given_to_nobody(
    console: Console, region: str
) -> None:
    failure = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    console.cloud.agents.cannot_load = failure
    with pytest.raises(LoadingFailed):
        console.programming.program(ADMIN, region, IMAGE_ID)
    assert console.cloud.told() == (1, 1)
    job = console.cloud.accepted({})
    console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['BindFailed']


def test_placement_has_the_function_before_the_operator_hears_of_it(
    cloud: Cloud,
) -> None:
    told: list[str] = []

    def place(hostname: str) -> None:
        told.append(hostname)
        # It goes on without; a job is there that tells it later.
        raise ServiceUnavailable(what='Placement')

    library = Library(cloud.images, LARGEST)
    loader = Loader(cloud.database, cloud.agents, library, place)
    waiting = Waiting()
    handler = ProgramHandler(cloud.database, loader, waiting)
    runner = JobRunner(
        cloud.database, {Kind.PROGRAM: handler}, owner_of_process(30), workers=1
    )
    programming = Programming(cloud.database, loader, runner, waiting)
    record = programming.program(ADMIN, cloud.record().uuid, IMAGE_ID)
    runner.stop()
    assert record.bitstream_id == IMAGE_ID
    assert told == [HOST]


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


def test_a_load_that_is_followed_tells_its_end(console: Console) -> None:
    job = console.start()
    assert (job.state, job.step) == (ProgramState.RUNNING, ProgramStep.ACCEPTED)
    ended = console.ended(job)
    assert (ended.state, ended.progress) == (ProgramState.DONE, 100)
    assert console.cloud.record().bitstream_id == IMAGE_ID


def test_a_load_that_is_followed_tells_why_it_failed(console: Console) -> None:
    failure = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    console.cloud.agents.cannot_load = failure
    ended = console.ended(console.start())
    assert (ended.state, ended.step) == (ProgramState.FAILED, ProgramStep.LOADING)
    assert ended.reason == failure.text
    assert console.cloud.told() == (1, 1)


def test_a_silent_host_is_told_without_its_name(console: Console) -> None:
    console.cloud.agents.away = {HOST}
    waiting = console.ended(console.start())
    assert waiting.state is ProgramState.RUNNING
    assert waiting.reason == 'Its host does not answer yet.'


def test_a_load_that_ran_out_of_time_has_failed(console: Console) -> None:
    console.cloud.agents.away = {HOST}
    started = console.start()
    console.ended(started)
    console.cloud.lapse()
    (job,) = console.cloud.database.write(jobs.take, OWNER, 10, [Kind.PROGRAM])
    handler = ProgramHandler(console.cloud.database, console.cloud.loader, Waiting())
    handler.expire(job, 'It was not done before its deadline.')
    assert console.programming.show(ADMIN, started.uuid).state is ProgramState.FAILED
    assert console.cloud.told() == (1, 1)


def test_what_is_bound_is_not_even_accepted(console: Console) -> None:
    console.cloud.binder.run(console.cloud.accepted({}))
    with pytest.raises(DeployableInUse):
        console.start()


def test_whoever_is_no_admin_follows_what_his_project_started(
    console: Console,
) -> None:
    job = console.start()
    for project, sees in (('a' * 32, True), ('b' * 32, False), (None, False)):
        context = RequestContext(roles=['member'], project_id=project)
        if sees:
            assert console.programming.show(context, job.uuid).uuid == job.uuid
        else:
            with pytest.raises(JobNotFound):
                console.programming.show(context, job.uuid)


def test_images_are_listed_for_a_deployable_the_best_first(console: Console) -> None:
    cloud = console.cloud
    cloud.images.all[OTHER_IMAGE] = image(id=OTHER_IMAGE, properties={'board': 'u250'})
    listed = console.programming.bitstreams({}, cloud.record().uuid)
    assert [one.image_uuid for one in listed] == [IMAGE_ID, OTHER_IMAGE]
    assert listed[0].reasons == ()
    assert 'It is for board u250' in listed[1].reasons[0]
    # By itself there is nothing wrong with it.
    alone = console.programming.bitstreams({'board': 'U250'}, '')
    assert [(one.image_uuid, one.reasons) for one in alone] == [(OTHER_IMAGE, ())]
    with pytest.raises(DeployableNotFound):
        console.programming.bitstreams({}, str(uuid4()))


# --- shells -------------------------------------------------------------------------

SHELL_IMAGE = 'aaaaaaaa-0000-4000-8000-00000000005e'
SHELL = '5e' * 16


def add_shell(cloud: Cloud) -> None:
    said = {'shell_id': None, 'region_uuid': None, 'function_uuid': SHELL}
    shell = image(id=SHELL_IMAGE, properties={**said, 'bs-name': 'shell'})
    cloud.images.all[SHELL_IMAGE] = shell


def test_a_shell_empties_the_card_and_placement_follows(console: Console) -> None:
    cloud = console.cloud
    add_shell(cloud)
    console.program()
    console.program(SHELL_IMAGE)
    said = attributes(cloud.record())
    assert said[SHELL_KEY] == SHELL
    assert FUNCTION not in said
    assert 'bitstream_name' not in said
    assert cloud.record().bitstream_id is None
    assert not [trait for trait in cloud.row()[0] if 'FUNCTION_ID' in trait]
    assert Kind.PLACEMENT_SYNC in cloud.kinds()
    # It is there already, and nothing in it is brought back after a boot.
    console.program(SHELL_IMAGE)
    assert len(cloud.agents.loads) == 2


def test_a_shell_is_not_loaded_while_anything_on_the_card_is_bound(
    console: Console,
) -> None:
    add_shell(console.cloud)
    console.cloud.binder.run(console.cloud.accepted({}))
    with pytest.raises(DeployableInUse):
        console.program(SHELL_IMAGE)
    assert console.cloud.agents.loads == []


def test_no_bind_loads_a_shell(console: Console) -> None:
    add_shell(console.cloud)
    job = console.cloud.accepted({'accel:bitstream_id': SHELL_IMAGE})
    console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['BindFailed']
    (reason,) = console.cloud.reasons(job)
    assert 'It is a shell; program the deployable with it by hand.' in str(reason)
    assert console.cloud.agents.loads == []
