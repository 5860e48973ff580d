# SPDX-License-Identifier: Apache-2.0
"""Tests of the ARQ transition table against an independent copy of it."""

import itertools

import pytest

from cyborg_lite.errors.arqs import ArqStateConflict
from cyborg_lite.model.arqs.arqs import (
    RESOLVED_STATES,
    STORED_STATES,
    TRANSITIONS,
    UNREADY_STATES,
    Event,
    Scope,
    State,
    next_state,
)

# One row for each state and one column for each event; a dot: not allowed.
_TABLE = """
-            bind        succeed fail       unbind       released release-failed rebuild      delete
Initial      BindStarted .       .          Initial      .        .              .            Deleting
BindStarted  .           Bound   BindFailed Unbound      .        .              .            Deleting
Bound        .           .       BindFailed Unbound      .        .              Provisioning Deleting
Provisioning .           Bound   BindFailed Unbound      .        .              Provisioning Deleting
BindFailed   .           .       .          Unbound      .        .              .            Deleting
Unbound      BindStarted .       .          Unbound      Unbound  UnbindFailed   .            Deleting
UnbindFailed .           .       .          UnbindFailed Unbound  UnbindFailed   .            Deleting
Deleting     .           .       .          .            .        Deleting       .            Deleting
"""  # noqa: E501  # a table is read as a table

(_, *_EVENTS), *_ROWS = (line.split() for line in _TABLE.strip().splitlines())
_CELLS = {
    (state, event): cell
    for state, *cells in _ROWS
    for event, cell in zip(_EVENTS, cells, strict=True)
}


@pytest.mark.parametrize(
    ('state', 'event'), list(itertools.product(sorted(STORED_STATES), Event))
)
def test_next_state_follows_transition_table(state: State, event: Event) -> None:
    expected = _CELLS[state, event]
    if expected == '.':
        with pytest.raises(ArqStateConflict, match=state):
            next_state(state, event)
    else:
        assert next_state(state, event) == expected


@pytest.mark.parametrize('event', Event)
def test_unknown_state_has_no_transition(event: Event) -> None:
    assert set(State) - STORED_STATES == {State.UNKNOWN}
    with pytest.raises(ArqStateConflict, match='Unknown'):
        next_state(State.UNKNOWN, event)
    next_states = {state for row in TRANSITIONS.values() for state in row.values()}
    assert State.UNKNOWN not in next_states


def test_resolved_states_are_those_nova_accepts() -> None:
    assert sorted(RESOLVED_STATES) == ['BindFailed', 'Bound', 'Deleting']


def test_unready_states_are_not_resolved() -> None:
    assert sorted(UNREADY_STATES) == ['Provisioning', 'Unknown']
    assert not UNREADY_STATES & RESOLVED_STATES


@pytest.mark.parametrize(
    ('scope', 'own', 'other_projects', 'other_projects_bound'),
    [
        (Scope(project_id=None), True, True, True),
        (Scope(project_id='p'), True, False, False),
        (Scope(project_id='p', of_instances=True), True, False, True),
    ],
)
def test_scope_covers_own_project_and_bound_arqs(
    scope: Scope, own: bool, other_projects: bool, other_projects_bound: bool
) -> None:
    assert scope.covers('p', None) is own
    assert scope.covers('q', None) is other_projects
    assert scope.covers('q', 'instance') is other_projects_bound
    assert scope.covers(None, None) is (scope.project_id is None)
