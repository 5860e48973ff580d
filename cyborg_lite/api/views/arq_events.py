# SPDX-License-Identifier: Apache-2.0
"""History of an ARQ in the responses of the API."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from cyborg_lite.api.call import Call
from cyborg_lite.api.views.shapes import enum_of, nullable, source
from cyborg_lite.api.views.view import View
from cyborg_lite.model.arqs import Actor, Step


class _Pair(NamedTuple):
    step: Step
    following: Step | None  # ends the duration; None: not yet reached


class EventView(View):
    """A step of an ARQ; ``duration`` is in seconds, null for the last step."""

    step = source('step.step', str)
    actor = source('step.actor', enum_of(Actor))
    at = source('step.at', datetime)
    duration = nullable(float)
    reason = source('step.reason', nullable(str))

    @staticmethod
    def render_duration(pair: _Pair, call: Call) -> float | None:
        """Return the seconds until the next step."""
        step, following = pair
        if following is None:
            return None
        return max(0.0, (following.at - step.at).total_seconds())


class EventList(View):
    """The steps of an ARQ, oldest first."""

    events = [EventView]

    @staticmethod
    def render_events(steps: Sequence[Step], call: Call) -> Iterator[Any]:
        """Return each step with the next one."""
        return map(_Pair._make, zip_longest(steps, steps[1:]))
