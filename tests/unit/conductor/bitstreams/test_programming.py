# SPDX-License-Identifier: Apache-2.0
"""Programming of deployables by an operator."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.bitstreams.programming import (
    ProgramHandler,
    ProgrammingService,
    ProgramWaiters,
)
from cyborg_lite.conductor.jobs.operations import OperationService
from cyborg_lite.conductor.jobs.runner import Handler, JobRunner, Workers, create_owner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.errors.arqs import HandlesContended
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import DeployableInUse, DeployableNotFound
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams.bitstreams import FUNCTION
from cyborg_lite.model.bitstreams.bitstreams import SHELL as SHELL_KEY
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.inventory.host_report import Deployable
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import Operation, OperationKind, OperationState
from cyborg_lite.rpc.context import RequestContext, daemon_context
from tests.builders.bitstream_files import (
    IMAGE_ID,
    LARGEST,
    OTHER_FUNCTION,
    image,
)
from tests.builders.fpga_reports import HOST, fpga_card
from tests.builders.rows import OWNER
from tests.doubles.fpga_cloud import (
    BY_ID,
    OTHER_IMAGE,
    Cloud,
    attributes,
)


@pytest.fixture
def cloud(database: Database) -> Cloud:
    cloud = Cloud(database)
    cloud.plug(fpga_card())
    return cloud


ADMIN = RequestContext(is_admin=True, roles=['admin'], project_id='a' * 32)


class SignallingHandler(ProgramHandler):
    """Handler that signals the end of an attempt."""

    def __init__(
        self, database: Database, loader: BitstreamLoader, waiters: ProgramWaiters
    ) -> None:
        super().__init__(database, loader, waiters)
        self.finished = threading.Event()

    def run(self, job: Job) -> None:
        try:
            super().run(job)
        finally:
            self.finished.set()


@dataclass
class Console:
    """The programming service with a running job runner."""

    cloud: Cloud
    handler: SignallingHandler
    runner: JobRunner
    programming: ProgrammingService

    def program(self, image_id: str = IMAGE_ID) -> DeployableRecord:
        uuid = self.cloud.record().uuid
        return self.programming.program(ADMIN, uuid, image_id)

    def start(self) -> Operation:
        uuid = self.cloud.record().uuid
        return self.programming.start(ADMIN, uuid, IMAGE_ID)

    def read(self, uuid: str) -> Operation:
        return self.cloud.database.read(operations.read_operation, uuid)

    def finish(self, job: Operation) -> Operation:
        """Wait for the end of the attempt and return the job."""
        assert self.handler.finished.wait(30)
        self.runner.stop()
        self.runner.wait()
        return self.read(job.uuid)


@contextmanager
def create_console(
    cloud: Cloud, place: Callable[[str], None] | None = None
) -> Iterator[Console]:
    """Run a console.

    :param place: updates Placement for a host; None: as the cloud does
    """
    loader = cloud.loader
    if place is not None:
        catalog = BitstreamCatalog(cloud.images, LARGEST)
        loader = BitstreamLoader(cloud.database, cloud.agents, catalog, place)
    waiters = ProgramWaiters()
    handler = SignallingHandler(cloud.database, loader, waiters)
    handlers: dict[str, Handler] = {OperationKind.PROGRAM: handler}
    runner = JobRunner(cloud.database, handlers, create_owner(30), Workers(1, 1))
    programming = ProgrammingService(cloud.database, loader, runner, waiters)
    yield Console(cloud, handler, runner, programming)
    # The next test empties the tables. No thread may write by then.
    runner.stop()
    runner.wait()


@pytest.fixture
def console(cloud: Cloud) -> Iterator[Console]:
    with create_console(cloud) as console:
        yield console


def test_program_returns_updated_deployable(console: Console) -> None:
    record = console.program()
    assert record.bitstream_id == IMAGE_ID
    assert attributes(record)[FUNCTION] == OTHER_FUNCTION
    assert OperationKind.PROGRAM not in console.cloud.kinds()


def test_program_bound_deployable_raises(console: Console) -> None:
    console.cloud.binder.run(console.cloud.accept_bind({}))
    with pytest.raises(DeployableInUse):
        console.program()
    assert console.cloud.agents.loads == []


def test_program_twice_raises_and_bind_waits(console: Console) -> None:
    marked = update(AttachHandle).values(preparing=True)
    console.cloud.database.write(lambda session: session.execute(marked))
    with pytest.raises(DeployableInUse):
        console.program()
    job = console.cloud.accept_bind({})
    with pytest.raises(HandlesContended):
        console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['BindStarted']


def test_program_unknown_deployable_raises(console: Console) -> None:
    with pytest.raises(DeployableNotFound):
        console.programming.program(daemon_context(), str(uuid4()), IMAGE_ID)


def test_program_image_does_not_fit_raises(console: Console) -> None:
    console.cloud.images.all[IMAGE_ID] = image(properties={'board': 'u250'})
    with pytest.raises(BitstreamRefused, match='board u250'):
        console.program()
    assert console.cloud.kinds() <= {OperationKind.RECONCILE}


@pytest.mark.parametrize(
    ('failure', 'reserved'),
    [
        (DriverError(reason='fpgaconf is not installed'), 0),
        (LoadingFailed(image=IMAGE_ID, reason='CRC error'), 1),
    ],
)
def test_program_agent_error_reaches_caller(
    failure: CyborgError, reserved: int, console: Console
) -> None:
    console.cloud.agents.refusal = failure
    with pytest.raises(type(failure)) as caught:
        console.program()
    assert caught.value.text == failure.text
    assert console.cloud.row()[1] == reserved
    # The deployable can be bound again if it is usable.
    assert OperationKind.PROGRAM not in console.cloud.kinds()
    console.cloud.agents.refusal = None
    assert console.program().bitstream_id == IMAGE_ID


@pytest.fixture
def region(cloud: Cloud) -> str:
    """Return the uuid of the only region of a card without separate providers."""
    card = fpga_card()
    attributes = card.root.attributes
    below = Deployable(f'{card.root.name}_region0', attributes=attributes)
    cloud.plug(replace(card, root=replace(card.root, children=(below,))))
    return cloud.record(below.name).uuid


def test_program_only_region_loads_card(console: Console, region: str) -> None:
    record = console.programming.program(ADMIN, region, IMAGE_ID)
    assert (record.uuid, record.bitstream_id) == (region, IMAGE_ID)
    assert console.cloud.record().bitstream_id == IMAGE_ID
    # The card and its region name the same content.
    console.program()
    assert len(console.cloud.agents.loads) == 1


def test_program_only_region_fails_reserves_card(console: Console, region: str) -> None:
    failure = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    console.cloud.agents.cannot_load = failure
    with pytest.raises(LoadingFailed):
        console.programming.program(ADMIN, region, IMAGE_ID)
    assert console.cloud.read_inventory() == (1, 1)
    job = console.cloud.accept_bind({})
    console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['BindFailed']


def test_program_updates_placement_before_reply(cloud: Cloud) -> None:
    synced_hosts: list[str] = []

    def place(hostname: str) -> None:
        synced_hosts.append(hostname)
        # The operation continues; the Placement sync job updates Placement later.
        raise ServiceUnavailable(what='Placement')

    with create_console(cloud, place) as console:
        record = console.program()
    assert record.bitstream_id == IMAGE_ID
    assert synced_hosts == [HOST]


def test_program_region_removed_meanwhile_raises(cloud: Cloud, region: str) -> None:
    """A load may end with other regions than before."""

    def remove_region(hostname: str) -> None:
        cloud.agents.cards.clear()
        cloud.plug(fpga_card())

    not_found = pytest.raises(DeployableNotFound)
    with create_console(cloud, remove_region) as console, not_found:
        console.programming.program(ADMIN, region, IMAGE_ID)


def test_program_shell_with_bound_region_raises(database: Database) -> None:
    cloud = Cloud(database)
    cloud.plug(fpga_card(regions=2))
    cloud.images.all[IMAGE_ID] = image(properties={'shell_id': None})
    names = [f'{HOST}_0000:5e:00.0_region{number}' for number in range(2)]
    cloud.binder.run(cloud.accept_bind({}, names[1]))
    with create_console(cloud) as console, pytest.raises(DeployableInUse):
        console.programming.program(ADMIN, cloud.record(names[0]).uuid, IMAGE_ID)
    job = cloud.accept_bind(BY_ID, names[0])
    cloud.binder.run(job)
    assert cloud.states(job) == ['BindFailed']
    assert cloud.agents.loads == []


def test_retry_of_failed_program_loads_again(console: Console) -> None:
    agents = console.cloud.agents
    agents.cannot_load = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    started = console.start()
    assert console.handler.finished.wait(30)
    assert console.read(started.uuid).state is OperationState.FAILED
    console.handler.finished.clear()
    agents.cannot_load = None
    restarts = {'program': console.programming.restart}
    service = OperationService(console.cloud.database, lambda: None, restarts)
    service.retry(ADMIN, started.uuid)
    finished = console.finish(started)
    assert (finished.state, finished.reason) == (OperationState.SUCCEEDED, '')
    assert console.cloud.record().bitstream_id == IMAGE_ID


def test_start_job_failed_shows_reason(console: Console) -> None:
    failure = LoadingFailed(image=IMAGE_ID, reason='CRC error')
    console.cloud.agents.cannot_load = failure
    finished = console.finish(console.start())
    steps = [step['name'] for step in finished.steps]
    assert (finished.state, steps) == (OperationState.FAILED, ['checking', 'loading'])
    assert finished.reason == failure.text
    assert console.cloud.read_inventory() == (1, 1)


def test_start_agent_down_hides_hostname(console: Console) -> None:
    console.cloud.agents.down_hosts = {HOST}
    waiting = console.finish(console.start())
    assert waiting.state is OperationState.WAITING
    assert waiting.steps[-1]['reason'] == 'The agent of its host does not answer.'


def test_start_job_expired_shows_failure(console: Console) -> None:
    console.cloud.agents.down_hosts = {HOST}
    started = console.start()
    console.finish(started)
    console.cloud.lapse()
    (job,) = console.cloud.database.write(
        queue.lease_jobs, OWNER, 10, [OperationKind.PROGRAM]
    )
    handler = ProgramHandler(
        console.cloud.database, console.cloud.loader, ProgramWaiters()
    )
    handler.expire(job, 'The deadline passed before an attempt succeeded.')
    assert console.read(started.uuid).state is OperationState.FAILED
    assert console.cloud.read_inventory() == (1, 1)


def test_list_bitstreams_for_deployable_sorts_best_first(console: Console) -> None:
    cloud = console.cloud
    cloud.images.all[OTHER_IMAGE] = image(id=OTHER_IMAGE, properties={'board': 'u250'})
    listed = console.programming.list_bitstreams({}, cloud.record().uuid)
    assert [bitstream.image_uuid for bitstream in listed] == [IMAGE_ID, OTHER_IMAGE]
    assert listed[0].reasons == ()
    assert 'It is for board u250' in listed[1].reasons[0]
    # Without a deployable the image has no fault.
    alone = console.programming.list_bitstreams({'board': 'U250'}, '')
    assert [(bitstream.image_uuid, bitstream.reasons) for bitstream in alone] == [
        (OTHER_IMAGE, ())
    ]
    with pytest.raises(DeployableNotFound):
        console.programming.list_bitstreams({}, str(uuid4()))


# --- shells -------------------------------------------------------------------------

SHELL_IMAGE = 'aaaaaaaa-0000-4000-8000-00000000005e'
SHELL = '5e' * 16


def add_shell(cloud: Cloud) -> None:
    properties = {'shell_id': None, 'region_uuid': None, 'function_uuid': SHELL}
    shell = image(id=SHELL_IMAGE, properties={**properties, 'bs-name': 'shell'})
    cloud.images.all[SHELL_IMAGE] = shell


def test_program_shell_clears_card_and_syncs(console: Console) -> None:
    cloud = console.cloud
    add_shell(cloud)
    console.program()
    console.program(SHELL_IMAGE)
    values = attributes(cloud.record())
    assert values[SHELL_KEY] == SHELL
    assert FUNCTION not in values
    assert 'bitstream_name' not in values
    assert cloud.record().bitstream_id is None
    assert not [trait for trait in cloud.row()[0] if 'FUNCTION_ID' in trait]
    assert OperationKind.RECONCILE in cloud.kinds()
    # The card holds the shell already.
    console.program(SHELL_IMAGE)
    assert len(cloud.agents.loads) == 2


def test_bind_with_shell_image_fails(console: Console) -> None:
    add_shell(console.cloud)
    job = console.cloud.accept_bind({'accel:bitstream_id': SHELL_IMAGE})
    console.cloud.binder.run(job)
    assert console.cloud.states(job) == ['BindFailed']
    (reason,) = console.cloud.reasons(job)
    assert 'It is a shell. An operator must program it into the deployable.' in str(
        reason
    )
    assert console.cloud.agents.loads == []
