# SPDX-License-Identifier: Apache-2.0
"""Jobs of a bind, and the scope that sees the ARQs of all projects."""

from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import JobType, NewJob

ANY_PROJECT = Scope(project_id=None)
BIND_JOB = NewJob(JobType.BIND, limit_ms=60_000)
BOUND_EVENT_JOB = NewJob(JobType.NOVA_EVENT, {'succeeded': True})
FAILED_EVENT_JOB = NewJob(JobType.NOVA_EVENT, {'succeeded': False})
