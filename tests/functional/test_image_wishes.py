# SPDX-License-Identifier: Apache-2.0
"""Requests for a server whose image, in a real Glance, asks for something too."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.arqs import Arqs
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.rpc.context import RequestContext
from tests.fakes.bitstream_files import LARGEST
from tests.fakes.databases import database_fixture
from tests.fakes.real_glance import RealGlance, real_glance
from tests.fakes.rows import PROJECT, add_profile
from tests.functional.test_glance import client
from tests.unit.conductor.test_binding import RULES

__all__ = ['database', 'real_glance']

database = database_fixture('sqlite')

CALLER = RequestContext(project_id=PROJECT, roles=['member'])
GROUPS = [{'resources:PGPU': '1'}, {'resources:FPGA': '1'}]


@pytest.fixture
def arqs(database: Database, real_glance: RealGlance) -> Arqs:
    runner = JobRunner(database, {}, owner_of_process(30), workers=1)
    runner.stop()
    library = Library(client(real_glance.endpoint), LARGEST)
    return Arqs(database, runner, RULES, library)


def test_the_fpga_is_loaded_with_what_the_image_names(
    database: Database, arqs: Arqs, real_glance: RealGlance
) -> None:
    name = add_profile(database, GROUPS)
    wish = {'accel:function_id': 'ab' * 16}
    image = real_glance.upload(b'a guest', (), {**wish, 'hw_disk_bus': 'virtio'})
    gpu, fpga = arqs.create(CALLER, name, image)
    assert gpu.device_profile_group == GROUPS[0]
    assert fpga.device_profile_group == {**GROUPS[1], **wish}


def test_an_image_that_cannot_be_served_makes_no_requests(
    database: Database, arqs: Arqs, real_glance: RealGlance
) -> None:
    name = add_profile(database, GROUPS)
    wrong = real_glance.upload(b'a guest', (), {'accel:bitstream_id': 'x'})
    for image in (wrong, str(uuid4())):
        with pytest.raises(InvalidInput, match=image):
            arqs.create(CALLER, name, image)
