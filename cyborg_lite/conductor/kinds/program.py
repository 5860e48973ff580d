# SPDX-License-Identifier: Apache-2.0
"""Loads an image into a deployable."""

from typing import Final

from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.conductor.programming import ProgramHandler
from cyborg_lite.model.jobs import Kind

KIND: Final = Kind.PROGRAM


def handler(workplace: Workplace) -> Handler:
    return ProgramHandler(workplace.database, workplace.loader, workplace.waiting)
