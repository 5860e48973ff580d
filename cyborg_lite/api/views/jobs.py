# SPDX-License-Identifier: Apache-2.0
"""Programming jobs in the responses of the API."""

from datetime import datetime
from typing import Self

from wsme import types

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import UUID, Shape, enum_of, nullable
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep


class JobView(types.Base):  # type: ignore[misc]  # untyped base
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
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = nullable(datetime)

    @classmethod
    def build(cls, job: ProgramJob, links: Links) -> Self:
        """Build the view."""
        return cls(
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
