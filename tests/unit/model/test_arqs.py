# SPDX-License-Identifier: Apache-2.0
"""Every cell of the table of states, written down a second time."""

import itertools

import pytest

from cyborg_lite.exceptions import ArqStateConflict
from cyborg_lite.model.arqs import (
    NOT_TO_BE_TRUSTED,
    RESOLVED,
    STORED,
    TRANSITIONS,
    Event,
    Scope,
    State,
    after,
    states_that_allow,
)

_EVENTS = (
    'bind',
    'succeed',
    'fail',
    'unbind',
    'released',
    'release-failed',
    'rebuild',
    'delete',
)

# A row for each state, a column for each event; a dot: not allowed.
_TABLE = """
Initial      BindStarted .     .          Initial      .       .            .            Deleting
BindStarted  .           Bound BindFailed Unbound      .       .            .            Deleting
Bound        .           .     BindFailed Unbound      .       .            Provisioning Deleting
Provisioning .           Bound BindFailed Unbound      .       .            Provisioning Deleting
BindFailed   .           .     .          Unbound      .       .            .            Deleting
Unbound      BindStarted .     .          Unbound      Unbound UnbindFailed .            Deleting
UnbindFailed .           .     .          UnbindFailed Unbound UnbindFailed .            Deleting
Deleting     .           .     .          .            .       Deleting     .            Deleting
"""  # noqa: E501  # a table is read as a table

_CELLS = {
    (line.split()[0], event): cell
    for line in _TABLE.strip().splitlines()
    for event, cell in zip(_EVENTS, line.split()[1:], strict=True)
}


@pytest.mark.parametrize(('state', 'event'), itertools.product(sorted(STORED), Event))
def test_each_event_leads_from_each_state_where_the_table_says(
    state: State, event: Event
) -> None:
    expected = _CELLS[state, event]
    if expected == '.':
        with pytest.raises(ArqStateConflict, match=state):
            after(state, event)
    else:
        assert after(state, event) == expected


@pytest.mark.parametrize('event', Event)
def test_what_is_only_reported_has_no_place_in_the_table(event: Event) -> None:
    assert set(State) - STORED == {State.UNKNOWN}
    with pytest.raises(ArqStateConflict, match='Unknown'):
        after(State.UNKNOWN, event)
    reached = {state for row in TRANSITIONS.values() for state in row.values()}
    assert State.UNKNOWN not in reached


def test_nothing_leads_back_to_the_beginning() -> None:
    for state, row in TRANSITIONS.items():
        if state is not State.INITIAL:
            assert State.INITIAL not in row.values()


def test_every_state_can_be_deleted() -> None:
    assert states_that_allow(Event.DELETE) == STORED


def test_only_what_holds_nothing_can_be_bound() -> None:
    assert states_that_allow(Event.BIND) == {State.INITIAL, State.UNBOUND}


def test_nova_takes_three_states_for_an_answer() -> None:
    assert sorted(RESOLVED) == ['BindFailed', 'Bound', 'Deleting']


def test_a_guest_may_not_start_where_its_device_may_not_be_there() -> None:
    assert sorted(NOT_TO_BE_TRUSTED) == ['Provisioning', 'Unknown']
    assert not NOT_TO_BE_TRUSTED & RESOLVED


@pytest.mark.parametrize(
    ('scope', 'own', 'others', 'others_bound'),
    [
        (Scope(project_id=None), True, True, True),
        (Scope(project_id='p'), True, False, False),
        (Scope(project_id='p', of_instances=True), True, False, True),
    ],
)
def test_a_scope_covers(
    scope: Scope, own: bool, others: bool, others_bound: bool
) -> None:
    assert scope.covers('p', None) is own
    assert scope.covers('q', None) is others
    assert scope.covers('q', 'instance') is others_bound
    assert scope.covers(None, None) is (scope.project_id is None)
