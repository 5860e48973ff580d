# SPDX-License-Identifier: Apache-2.0
"""Jobs in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.views.shapes import (
    TEXT_OR_NULL,
    UUID,
    Shape,
    enum_of,
    nullable,
    optional,
    source,
)
from cyborg_lite.api.views.view import LINKS, ListView, View
from cyborg_lite.model.bitstreams.program_jobs import ProgramState, ProgramStep
from cyborg_lite.model.jobs import JobRecord, JobState, describe_payload


class JobView(View):
    """A programming job; ``reason`` says why it failed or waits.

    ``progress`` is in percent.
    """

    _path = 'v2/jobs/{uuid}'

    uuid = UUID
    deployable_uuid = UUID
    image_uuid = UUID
    state = enum_of(ProgramState)
    step = enum_of(ProgramStep)
    progress = Shape(int, minimum=0, maximum=100)
    reason = TEXT_OR_NULL
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)


class QueuedJobView(View):
    """An unfinished or failed job of any type; ``reason`` is its last error.

    ``age`` is in seconds since the job was created. ``due_in`` is in seconds from now,
    and negative if the job is overdue.
    ``subject`` names the object of the job, for example ``host compute-1``.
    """

    _path = 'v2/jobs/{uuid}'

    uuid = UUID
    kind = source('type', str)
    state = enum_of(JobState)
    subject = nullable(str)
    step = TEXT_OR_NULL
    attempts = int
    age = float
    due_in = float
    deadline_in = nullable(float)
    is_cancelled = source('cancelled', bool)
    reason = source('last_error', TEXT_OR_NULL)
    request_id = nullable(str)
    links = LINKS

    @staticmethod
    def render_subject(job: JobRecord, call: Call) -> str | None:
        """Return the name of the object of the job."""
        return describe_payload(job.payload)


class QueuedJobList(ListView):
    """A page of jobs, oldest first."""

    jobs = [QueuedJobView]
    jobs_links = optional(LINKS)
