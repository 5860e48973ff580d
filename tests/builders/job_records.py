# SPDX-License-Identifier: Apache-2.0
"""Jobs as administrators read them."""

from typing import Any
from uuid import uuid4

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job
from cyborg_lite.model.jobs import JobRecord, JobState, JobType


def build_job_record(**fields: Any) -> JobRecord:
    """Return a waiting job."""
    return JobRecord(
        **{
            'uuid': str(uuid4()),
            'type': JobType.RELEASE,
            'state': JobState.WAITING,
            'key': None,
            'payload': {},
            'attempts': 0,
            'step': '',
            'age': 1.5,
            'due_in': -0.5,
            'deadline_in': None,
            'cancelled': False,
            'owner': None,
            'last_error': '',
            'request_id': None,
            **fields,
        }
    )


def add_job_row(database: Database, **columns: Any) -> str:
    """Add the row of a waiting job; return its uuid."""
    row = Job(
        **{
            'uuid': str(uuid4()),
            'kind': JobType.AUDIT,
            'payload': {},
            'run_after': 0,
            'created_at': 0,
            **columns,
        }
    )
    uuid = row.uuid
    database.write(lambda session: session.add(row))
    return uuid
