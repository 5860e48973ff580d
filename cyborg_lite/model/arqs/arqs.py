# SPDX-License-Identifier: Apache-2.0
"""Accelerator requests (ARQs), their states and the table of transitions."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cyborg_lite.errors.arqs import ArqStateConflict
from cyborg_lite.model.profiles.device_profiles import AttachTarget, Group


class State(enum.StrEnum):
    """States of an ARQ as clients read them. Nova compares the values."""

    INITIAL = 'Initial'
    BIND_STARTED = 'BindStarted'
    BOUND = 'Bound'
    BIND_FAILED = 'BindFailed'
    UNBOUND = 'Unbound'
    UNBIND_FAILED = 'UnbindFailed'
    DELETING = 'Deleting'
    PROVISIONING = 'Provisioning'
    """Bound; the agent is rebuilding the device after a host reboot."""
    UNKNOWN = 'Unknown'
    """Bound, but the device is lost, or needs an agent that is down. Never stored."""


class Event(enum.StrEnum):
    """Events that change the state of an ARQ."""

    BIND = 'bind'
    SUCCEED = 'succeed'
    FAIL = 'fail'
    UNBIND = 'unbind'
    RELEASED = 'released'
    RELEASE_FAILED = 'release-failed'
    REBUILD = 'rebuild'
    DELETE = 'delete'


TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.INITIAL: {
        Event.BIND: State.BIND_STARTED,
        Event.UNBIND: State.INITIAL,
        Event.DELETE: State.DELETING,
    },
    State.BIND_STARTED: {
        Event.SUCCEED: State.BOUND,
        Event.FAIL: State.BIND_FAILED,
        Event.UNBIND: State.UNBOUND,
        Event.DELETE: State.DELETING,
    },
    State.BOUND: {
        Event.FAIL: State.BIND_FAILED,
        Event.REBUILD: State.PROVISIONING,
        Event.UNBIND: State.UNBOUND,
        Event.DELETE: State.DELETING,
    },
    State.PROVISIONING: {
        Event.SUCCEED: State.BOUND,
        Event.FAIL: State.BIND_FAILED,
        Event.REBUILD: State.PROVISIONING,
        Event.UNBIND: State.UNBOUND,
        Event.DELETE: State.DELETING,
    },
    State.BIND_FAILED: {
        Event.UNBIND: State.UNBOUND,
        Event.DELETE: State.DELETING,
    },
    # An unbound ARQ may still have a handle that the host is cleaning. The ARQ keeps
    # the handle until the release ends. It can be bound again, but gets another handle
    # only then.
    State.UNBOUND: {
        Event.BIND: State.BIND_STARTED,
        Event.UNBIND: State.UNBOUND,
        Event.RELEASED: State.UNBOUND,
        Event.RELEASE_FAILED: State.UNBIND_FAILED,
        Event.DELETE: State.DELETING,
    },
    State.UNBIND_FAILED: {
        Event.UNBIND: State.UNBIND_FAILED,
        Event.RELEASED: State.UNBOUND,
        Event.RELEASE_FAILED: State.UNBIND_FAILED,
        Event.DELETE: State.DELETING,
    },
    State.DELETING: {
        Event.DELETE: State.DELETING,
        Event.RELEASE_FAILED: State.DELETING,
    },
}

STORED_STATES: Final = frozenset(TRANSITIONS)
"""States that the database stores; the others are computed on read."""

UNREADY_STATES: Final = frozenset({State.PROVISIONING, State.UNKNOWN})
"""States in which an instance that starts now may not find its device."""

RESOLVED_STATES: Final = frozenset({State.BOUND, State.BIND_FAILED, State.DELETING})
"""States that end a bind; Nova waits for them."""

HANDLE_SHOWN_STATES: Final = frozenset({State.BOUND, State.UNKNOWN})
"""States in which the API shows the attach handle; otherwise it is not ready."""

DEVICE_IN_USE_STATES: Final = frozenset({State.BOUND, State.PROVISIONING})
"""States in which a claimed handle is in use, neither prepared nor cleaned."""


def next_state(state: State, event: Event) -> State:
    """Return the state that follows an event.

    :raises ArqStateConflict: the state does not allow the event
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise ArqStateConflict(state=state, event=event) from None


def states_that_allow(event: Event) -> frozenset[State]:
    """Return the states in which the event is allowed."""
    return frozenset(state for state, row in TRANSITIONS.items() if event in row)


@dataclass(frozen=True, slots=True)
class Binding:
    """Values of a bind: the instance and the provider that Nova chose for an ARQ."""

    hostname: str
    device_rp_uuid: str
    instance_uuid: str
    project_id: str | None = None  # None: the PATCH does not name it


@dataclass(frozen=True, slots=True)
class Scope:
    """The ARQs that a caller may see and change."""

    project_id: str | None  # None: all projects
    # True: Nova with its service token, which names ARQs by instance or uuid. Such ARQs
    # belong to the instance, even if an evacuation left them in another project.
    of_instances: bool = False

    def covers(self, project_id: str | None, instance_uuid: str | None) -> bool:
        """Check whether the caller may see an ARQ of the project and instance."""
        return (
            self.project_id is None
            or self.project_id == project_id
            or (self.of_instances and instance_uuid is not None)
        )


class Actor(enum.StrEnum):
    """Component that caused a step. It does not reveal hosts to tenants."""

    CLIENT = 'client'
    CONDUCTOR = 'conductor'
    AGENT = 'agent'


@dataclass(frozen=True, slots=True)
class Step:
    """Step in the history of an ARQ: a new state, or a stage before it."""

    step: str
    actor: Actor
    at: datetime
    reason: str | None = None  # None: no error
    error_code: str | None = None  # of ``reason``; None: no error, or not known
    ended_at: datetime | None = None  # time of the next step; None: there is none
    arq_uuid: str = ''
    instance_uuid: str | None = None  # None: the ARQ had no instance at this step


@dataclass(frozen=True, slots=True)
class Arq:
    """A request for one accelerator, with its attach handle once it is bound."""

    uuid: str
    state: State
    device_profile_name: str
    device_profile_group_id: int
    device_profile_group: Mapping[str, str]
    created_at: datetime
    updated_at: datetime | None = None  # None: never updated
    project_id: str | None = None
    hostname: str | None = None  # None, with the next two: not bound
    device_rp_uuid: str | None = None
    instance_uuid: str | None = None
    # Reason of the last failed bind or release, or the current fault of the device.
    status_reason: str | None = None
    error_code: str | None = None  # of ``status_reason``; None: not known
    attach_handle_uuid: str | None = None  # None, with the next: it has no handle
    attach_handle_type: str | None = None
    attach_handle_info: Mapping[str, str] = field(default_factory=dict)
    needs_host: bool = False  # the agent must prepare the handle
    device_loss: str = ''  # why the instance cannot use its device; empty: it can
    deployable_uuid: str | None = None  # None, with the next: it has no handle
    device_uuid: str | None = None
    # Time of the last change to each state. Empty: the query was not detailed.
    state_times: Mapping[str, datetime] = field(default_factory=dict)
    # Which alternative of the group of the profile ``device_profile_group`` is; 0: the
    # preferred one, or the only one. The last one may be the former group of a profile
    # that was edited shortly before.
    alternative: int = 0

    @property
    def is_resolved(self) -> bool:
        """Return True if the bind has ended, or the ARQ is being deleted."""
        return self.state in RESOLVED_STATES

    @property
    def attach_target(self) -> AttachTarget:
        """Consumer of the accelerator."""
        return Group.parse(self.device_profile_group).attach_target

    @property
    def is_not_for_guest(self) -> bool:
        """Return True if the ARQ is bound, but Nova attaches nothing for it.

        Its attach target is not the instance, or a companion ARQ has the handle.
        """
        for_guest = self.attach_target is AttachTarget.VM
        has_handle = self.attach_handle_uuid is not None
        is_bound = self.state in HANDLE_SHOWN_STATES
        return is_bound and not (has_handle and for_guest)
