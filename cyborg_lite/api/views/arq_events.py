# SPDX-License-Identifier: Apache-2.0
"""The history of an accelerator request as clients read it."""

from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Self

from wsme import types

from cyborg_lite.api.views.shapes import nullable, one_of
from cyborg_lite.model.arqs import Actor, Step


class EventView(types.Base):  # type: ignore[misc]  # untyped base
    step = str
    actor = one_of(Actor)
    at = datetime
    duration = nullable(float)
    reason = nullable(str)

    @classmethod
    def showing(cls, step: Step, following: Step | None) -> Self:
        """``duration``: seconds until the next step; null: there is none yet."""
        lasted = following and max(0.0, (following.at - step.at).total_seconds())
        return cls(
            step=step.step,
            actor=step.actor.value,
            at=step.at,
            duration=lasted,
            reason=step.reason,
        )


class EventList(types.Base):  # type: ignore[misc]  # untyped base
    events = [EventView]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, steps: Sequence[Step]) -> Self:
        pairs = zip_longest(steps, steps[1:])
        return cls(events=[EventView.showing(one, after) for one, after in pairs])
