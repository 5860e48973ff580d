# SPDX-License-Identifier: Apache-2.0
"""ARQs of an instance whose image in a real Glance has accelerator properties."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.arqs.arqs import ArqService
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers, create_owner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bind_rules import RULES
from tests.builders.bitstream_files import LARGEST
from tests.builders.rows import PROJECT, add_profile
from tests.servers.databases import database_fixture
from tests.servers.glance import RealGlance, build_client, real_glance

__all__ = ['database', 'real_glance']

database = database_fixture('sqlite')

CALLER = RequestContext(project_id=PROJECT, roles=['member'])
GROUPS = [{'resources:PGPU': '1'}, {'resources:FPGA': '1'}]


@pytest.fixture
def arqs(database: Database, real_glance: RealGlance) -> ArqService:
    runner = JobRunner(database, {}, create_owner(30), workers=Workers(1, 1))
    runner.stop()
    library = BitstreamCatalog(build_client(real_glance.endpoint), LARGEST)
    return ArqService(database, runner, RULES, library)


def test_image_properties_select_the_bitstream(
    database: Database, arqs: ArqService, real_glance: RealGlance
) -> None:
    name = add_profile(database, GROUPS)
    wish = {'accel:function_id': 'ab' * 16}
    image = real_glance.upload(b'a guest', (), {**wish, 'hw_disk_bus': 'virtio'})
    gpu, fpga = arqs.create(CALLER, name, image)
    assert gpu.device_profile_group == GROUPS[0]
    assert fpga.device_profile_group == {**GROUPS[1], **wish}


def test_image_properties_unsatisfiable_create_no_arqs(
    database: Database, arqs: ArqService, real_glance: RealGlance
) -> None:
    name = add_profile(database, GROUPS)
    guest_image = real_glance.upload(b'a guest', (), {'accel:bitstream_id': 'x'})
    for image in (guest_image, str(uuid4())):
        with pytest.raises(InvalidInput, match=image):
            arqs.create(CALLER, name, image)
