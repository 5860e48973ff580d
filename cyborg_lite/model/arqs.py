# SPDX-License-Identifier: Apache-2.0
"""An accelerator request (ARQ) and the one table of what may become of it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cyborg_lite.exceptions import ArqStateConflict
from cyborg_lite.model.device_profiles import AttachTarget, attach_target


class State(enum.StrEnum):
    """The words that clients read; Nova compares them letter by letter."""

    INITIAL = 'Initial'
    BIND_STARTED = 'BindStarted'
    BOUND = 'Bound'
    BIND_FAILED = 'BindFailed'
    UNBOUND = 'Unbound'
    UNBIND_FAILED = 'UnbindFailed'
    DELETING = 'Deleting'
    PROVISIONING = 'Provisioning'
    """Bound, and the agent is rebuilding the device after a host reboot."""
    UNKNOWN = 'Unknown'
    """Bound, and the host that the device needs is silent. Reported, never stored."""


class Event(enum.StrEnum):
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
    # An unbound request may still hold a device that its host is cleaning. The
    # handle stays with it until that is done, so it can be bound again but gets
    # another device only then.
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

STORED: Final = frozenset(TRANSITIONS)
"""What a row may say; the others are found out when it is read."""

NOT_TO_BE_TRUSTED: Final = frozenset({State.PROVISIONING, State.UNKNOWN})
"""Where a guest that starts now may find that its device is not there."""

RESOLVED: Final = frozenset({State.BOUND, State.BIND_FAILED, State.DELETING})
"""What Nova takes for an answer."""

WITH_HANDLE: Final = frozenset({State.BOUND, State.UNKNOWN})
"""Where the attach handle is shown; elsewhere it is not ready, or not theirs."""

HAS_DEVICE: Final = frozenset({State.BOUND, State.PROVISIONING})
"""Where a held handle is in use; elsewhere its host prepares it, or cleans it."""


def after(state: State, event: Event) -> State:
    """The state that follows.

    :raises ArqStateConflict: the event has no place in that state
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise ArqStateConflict(state=state, event=event) from None


def states_that_allow(event: Event) -> frozenset[State]:
    """For the WHERE of the statement that settles a race."""
    return frozenset(state for state, row in TRANSITIONS.items() if event in row)


@dataclass(frozen=True, slots=True)
class Binding:
    """Where Nova wants one request to be bound: the values of its patch."""

    hostname: str
    device_rp_uuid: str
    instance_uuid: str
    project_id: str | None = None  # None: not named in the patch


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose requests a caller may see and change."""

    project_id: str | None  # None: everybody's
    # Nova, with its service token: what it asks for by instance or by uuid is the
    # server's, even where an admin's evacuation left it in another project.
    of_instances: bool = False

    def covers(self, project_id: str | None, instance_uuid: str | None) -> bool:
        return (
            self.project_id is None
            or self.project_id == project_id
            or (self.of_instances and instance_uuid is not None)
        )


class Actor(enum.StrEnum):
    """Who took a step; said so that a tenant learns nothing of the cloud's hosts."""

    CLIENT = 'client'
    CONDUCTOR = 'conductor'
    AGENT = 'agent'


@dataclass(frozen=True, slots=True)
class Step:
    """One step in the history of a request: a state it came to, or a stage before."""

    step: str
    actor: Actor
    at: datetime
    reason: str | None = None  # None: nothing went wrong


@dataclass(frozen=True, slots=True)
class Arq:
    """One request for one accelerator, with its handle once it is bound."""

    uuid: str
    state: State
    device_profile_name: str
    device_profile_group_id: int
    device_profile_group: Mapping[str, str]
    created_at: datetime
    updated_at: datetime | None = None  # None: never changed
    project_id: str | None = None
    hostname: str | None = None  # None, with the two below: not bound to anything
    device_rp_uuid: str | None = None
    instance_uuid: str | None = None
    # Why the last bind or release failed, or what is wrong with the device meanwhile.
    status_reason: str | None = None
    attach_handle_uuid: str | None = None  # None, with the two below: holds none
    attach_handle_type: str | None = None
    attach_handle_info: Mapping[str, str] = field(default_factory=dict)
    needs_host: bool = False  # its host must have prepared the handle that it holds
    deployable_uuid: str | None = None  # None, with the one below: holds no handle
    device_uuid: str | None = None
    # When it last came to each state, by its word. Empty: nobody asked for details.
    state_times: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def resolved(self) -> bool:
        return self.state in RESOLVED

    @property
    def attach_target(self) -> AttachTarget:
        """Whom the accelerator is for."""
        return attach_target(self.device_profile_group)

    @property
    def is_not_for_guest(self) -> bool:
        """Bound, and nothing of it is attached to the guest.

        It is for somebody else; or another request has the handle for both.
        """
        for_guest = self.attach_target is AttachTarget.VM
        bare = self.attach_handle_uuid is None
        return self.state is State.BOUND and (bare or not for_guest)
