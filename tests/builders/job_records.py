# SPDX-License-Identifier: Apache-2.0
"""Jobs as administrators read them."""

from typing import Any
from uuid import uuid4

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
