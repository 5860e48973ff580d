# SPDX-License-Identifier: Apache-2.0
"""Binds what Nova asks for."""

from typing import Final

from cyborg_lite.conductor.binding import BindHandler
from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.model.jobs import Kind

KIND: Final = Kind.BIND


def handler(workplace: Workplace) -> Handler:
    return BindHandler(
        workplace.database,
        workplace.agents,
        workplace.placement,
        workplace.rules,
        workplace.loader,
    )
