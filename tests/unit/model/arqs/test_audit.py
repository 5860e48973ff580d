# SPDX-License-Identifier: Apache-2.0
"""Tests of the ARQ states that an audit examines."""

from cyborg_lite.model.arqs.arqs import STORED_STATES, Event, State, states_that_allow
from cyborg_lite.model.arqs.audit import (
    LEFTOVER_STATES,
    STATES_WITH_HANDLE,
    STATES_WITH_INSTANCE,
)


def test_every_stored_state_is_audited() -> None:
    assert LEFTOVER_STATES | STATES_WITH_HANDLE | STATES_WITH_INSTANCE == STORED_STATES
    assert not LEFTOVER_STATES & (STATES_WITH_INSTANCE | STATES_WITH_HANDLE)
    assert states_that_allow(Event.DELETE) >= STATES_WITH_INSTANCE | LEFTOVER_STATES
    assert State.BIND_STARTED not in STATES_WITH_INSTANCE  # its job may still run
    assert State.BIND_FAILED not in STATES_WITH_HANDLE
