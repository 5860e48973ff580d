# SPDX-License-Identifier: Apache-2.0
"""Tests of the ARQ states that an audit examines."""

from cyborg_lite.model.arqs.arqs import STORED_STATES, Event, State, states_that_allow
from cyborg_lite.model.arqs.audit import (
    LEFTOVER_STATES,
    STATES_WITH_HANDLE,
    STATES_WITH_INSTANCE,
    Remedy,
)


def test_every_stored_state_is_audited() -> None:
    assert LEFTOVER_STATES | STATES_WITH_HANDLE | STATES_WITH_INSTANCE == STORED_STATES


def test_leftover_states_have_no_instance_or_handle() -> None:
    assert not LEFTOVER_STATES & (STATES_WITH_INSTANCE | STATES_WITH_HANDLE)


def test_state_with_running_bind_is_not_checked_for_instance() -> None:
    assert State.BIND_STARTED not in STATES_WITH_INSTANCE
    assert State.BIND_STARTED in STATES_WITH_HANDLE


def test_failed_bind_owns_no_handle() -> None:
    assert State.BIND_FAILED not in STATES_WITH_HANDLE


def test_audited_states_allow_delete() -> None:
    assert states_that_allow(Event.DELETE) >= STATES_WITH_INSTANCE | LEFTOVER_STATES


def test_remedies_have_distinct_texts() -> None:
    assert len({remedy.value for remedy in Remedy}) == len(Remedy)
