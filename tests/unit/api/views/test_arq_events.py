# SPDX-License-Identifier: Apache-2.0
"""Tests of the history of an ARQ in responses."""

from datetime import UTC, datetime, timedelta

from cyborg_lite.api.views.arqs import EventList
from cyborg_lite.model.arqs.arqs import Actor, Step
from tests.builders.api_calls import render

CREATED_AT = datetime(2026, 11, 21, tzinfo=UTC)


def build_step(name: str, seconds: float, reason: str | None = None) -> Step:
    return Step(name, Actor.CONDUCTOR, CREATED_AT + timedelta(seconds=seconds), reason)


def test_event_list_has_duration_until_following_step() -> None:
    steps = [build_step('BindStarted', 0), build_step('Bound', 2.5)]
    events = render(EventList(steps))['events']
    assert [(event['step'], event['duration']) for event in events] == [
        ('BindStarted', 2.5),
        ('Bound', None),
    ]


def test_event_list_negative_duration_is_zero() -> None:
    steps = [build_step('BindStarted', 5), build_step('Bound', 0)]
    assert render(EventList(steps))['events'][0]['duration'] == 0


def test_event_list_shows_actor_and_reason() -> None:
    events = EventList([build_step('BindFailed', 0, 'CRC error')])
    (event,) = render(events, is_admin=True)['events']
    assert (event['actor'], event['reason']) == ('conductor', 'CRC error')


def test_event_list_without_steps_is_empty() -> None:
    assert render(EventList([])) == {'events': []}
