# SPDX-License-Identifier: Apache-2.0
"""Jobs in the responses of the API."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from cyborg_lite.api.call import Call
from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import UUID, Shape, enum_of, nullable, optional
from cyborg_lite.api.views.view import View
from cyborg_lite.model.jobs import JobRecord, JobState, describe_payload
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep


class JobView(View):
    """A programming job; ``reason`` says why it failed or waits.

    ``progress`` is in percent.
    """

    uuid = UUID
    deployable_uuid = UUID
    image_uuid = UUID
    state = enum_of(ProgramState)
    step = enum_of(ProgramStep)
    progress = Shape(int, minimum=0, maximum=100)
    reason = nullable(str)
    links = [Link]
    created_at = datetime
    updated_at = nullable(datetime)

    @classmethod
    def build(
        cls, job: ProgramJob, links: Links, fields: frozenset[str] | None = None
    ) -> Self:
        """Build the view.

        :param fields: that the client requests; None: all
        """
        view = cls(
            uuid=job.uuid,
            deployable_uuid=job.deployable_uuid,
            image_uuid=job.image_uuid,
            state=job.state.value,
            step=job.step.value,
            progress=job.progress,
            reason=job.reason or None,
            links=Link.build_self_links(links, f'v2/jobs/{job.uuid}'),
            created_at=job.created_at,
            updated_at=job.updated_at,
        )
        return select_view(view, fields)


class QueuedJobView(View):
    """An unfinished or failed job of any type; ``reason`` is its last error.

    ``age`` is in seconds since the job was created. ``due_in`` is in seconds from now,
    and negative if the job is overdue.
    ``subject`` names the object of the job, for example ``host compute-1``.
    """

    uuid = UUID
    kind = str
    state = enum_of(JobState)
    subject = nullable(str)
    step = nullable(str)
    attempts = int
    age = float
    due_in = float
    deadline_in = nullable(float)
    is_cancelled = bool
    reason = nullable(str)
    request_id = nullable(str)
    links = [Link]

    @classmethod
    def build(
        cls, job: JobRecord, links: Links, fields: frozenset[str] | None = None
    ) -> Self:
        """Build the view.

        :param fields: that the client requests; None: all
        """
        view = cls(
            uuid=job.uuid,
            kind=job.type,
            state=job.state.value,
            subject=describe_payload(job.payload),
            step=job.step or None,
            attempts=job.attempts,
            age=job.age,
            due_in=job.due_in,
            deadline_in=job.deadline_in,
            is_cancelled=job.cancelled,
            reason=job.last_error or None,
            request_id=job.request_id,
            links=Link.build_self_links(links, f'v2/jobs/{job.uuid}'),
        )
        return select_view(view, fields)


class QueuedJobList(View):
    """A page of jobs, oldest first."""

    jobs = [QueuedJobView]
    jobs_links = optional([Link])

    @classmethod
    def build(cls, jobs: Iterable[JobRecord], call: Call, next_links: Any) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        views = [QueuedJobView.build(job, call.links, call.fields) for job in jobs]
        return cls(jobs=views, jobs_links=next_links)
