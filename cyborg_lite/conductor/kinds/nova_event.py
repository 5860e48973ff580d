# SPDX-License-Identifier: Apache-2.0
"""Tells Nova how a bind ended."""

from typing import Final

from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.conductor.nova_events import NovaEventHandler
from cyborg_lite.model.jobs import Kind

KIND: Final = Kind.NOVA_EVENT


def handler(workplace: Workplace) -> Handler:
    return NovaEventHandler(workplace.database, workplace.nova, workplace.metrics)
