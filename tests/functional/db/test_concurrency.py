# SPDX-License-Identifier: Apache-2.0
"""The same transactions under both concurrency backends, each in its own process."""

import os
import subprocess
import sys

import pytest
from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile
from tests.servers.databases import find_url

# Eight workers read and then increase a number. A lost update changes the result.
_CODE = """
from cyborg_lite import runtime
import sys, threading
from sqlalchemy import select
from cyborg_lite.db.core.dialects import refuse_blocking_driver
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile

url = sys.argv[1]
refuse_blocking_driver(url, runtime.BACKEND)
database = Database(url)

def count_up(session):
    row = session.scalars(select(DeviceProfile).with_for_update()).one()
    row.description = str(int(row.description) + 1)

def work():
    for _ in range(5):
        database.write(count_up)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
database.close()
"""


@pytest.mark.parametrize('backend', ['threading', 'eventlet'])
def test_concurrent_updates_both_backends_lose_none(
    database: Database, backend: str
) -> None:
    url = find_url(database)
    is_refused = backend == 'eventlet' and url.startswith('postgresql+psycopg:')
    profile = DeviceProfile(uuid='u', name='n', groups=[], description='0')
    database.write(lambda session: session.add(profile))
    process = subprocess.run(
        [sys.executable, '-c', _CODE, url],
        env={**os.environ, 'CYBORG_LITE_CONCURRENCY': backend},
        capture_output=True,
        text=True,
        check=False,
    )
    query = select(DeviceProfile.description)
    count = database.read(lambda session: session.scalar(query))
    if is_refused:
        assert 'blocks the whole process under eventlet' in process.stderr
        assert count == '0'
    else:
        assert process.returncode == 0, process.stderr
        assert count == '40'
