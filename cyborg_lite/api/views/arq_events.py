# SPDX-License-Identifier: Apache-2.0
"""History of an ARQ in the responses of the API."""

from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Self

from cyborg_lite.api.views.shapes import enum_of, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.arqs import Actor, Step


class EventView(View):
    """A step of an ARQ; ``duration`` is in seconds, null for the last step."""

    step = str
    actor = enum_of(Actor)
    at = datetime
    duration = nullable(float)
    reason = nullable(str)

    @classmethod
    def build(cls, step: Step, following: Step | None) -> Self:
        """Build the view.

        :param following: the next step, which ends the duration; None: not yet reached
        """
        duration = following and max(0.0, (following.at - step.at).total_seconds())
        return cls(
            step=step.step,
            actor=step.actor.value,
            at=step.at,
            duration=duration,
            reason=step.reason,
        )


class EventList(View):
    """The steps of an ARQ, oldest first."""

    events = [EventView]

    @classmethod
    def build(cls, steps: Sequence[Step]) -> Self:
        """Build the view."""
        pairs = zip_longest(steps, steps[1:])
        return cls(
            events=[EventView.build(step, following) for step, following in pairs]
        )
