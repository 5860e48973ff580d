# SPDX-License-Identifier: Apache-2.0
"""Has a host clean what a request gave back."""

from typing import Final

from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.model.jobs import Kind

KIND: Final = Kind.RELEASE


def handler(workplace: Workplace) -> Handler:
    return ReleaseHandler(workplace.database, workplace.agents, workplace.loader)
