# SPDX-License-Identifier: Apache-2.0
"""Cleaning of units between two users: steps, progress, states and records.

A unit is what one attach handle gives to an instance. A cleaning run is a series of
steps that a driver declares. The agent runs the steps; the conductor stores their
results.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.limits import LIMITS
from cyborg_lite.model.profiles.device_profiles import Group

MAX_STEPS: Final = LIMITS['CleanProgress.steps']
# Characters; `i/n name` must fit into the step of a job.
MAX_STEP_NAME: Final = LIMITS['CleanStep.name']
MAX_PROOF: Final = 255  # characters
MAX_ACTOR: Final = 255  # characters
RESET_STEP: Final = 'reset'
"""The step that resets a function, and proves that it is the same afterwards."""
LOGIC_STEP: Final = 'mark-logic'
"""The step that leaves the logic of a region, and marks it for replacement."""
PROFILE_KEY: Final = 'cleaning'
"""The ``accel:`` key of a group that replaces the policy of the driver."""
CONDUCTOR_ACTOR: Final = 'cyborg-lite'
"""Actor of a cleaning run that no operator has started."""


class CleanState(enum.StrEnum):
    """The state of cleaning, which decides if an ARQ can claim a free unit."""

    CLEAN = 'clean'
    DIRTY = 'dirty'
    """A cleaning job works on the unit, or will."""
    FAILED = 'clean_failed'
    """A step failed, or an operator cancelled the cleaning run."""
    USED = 'used'
    """The unit was for one use only."""
    NEEDS_BITSTREAM = 'needs_bitstream'
    """Only an ARQ with a bitstream can claim it, which replaces the former logic."""
    OCCUPIED = 'occupied'
    """The host has the handle prepared for an ARQ that does not own it here."""


FREE_STATES: Final = (CleanState.CLEAN, CleanState.NEEDS_BITSTREAM)
"""States in which an ARQ can claim a unit."""
OPERATOR_STATES: Final = (CleanState.FAILED, CleanState.USED)
"""States that only an operator ends."""


@dataclass(frozen=True, slots=True)
class CleanStep:
    """A step of a cleaning run, as a driver declares it."""

    name: str  # unique within the cleaning run; lower case, for example 'sanitize'
    destroys: str  # what is lost, for operators, for example 'all data of the drive'
    abortable: bool = False  # ``run_clean_step`` ends soon when it is told to abort
    seconds: int = 0  # rough duration; 0: less than a second


class CleanProgressState(enum.StrEnum):
    """State of a cleaning run on its host."""

    UNKNOWN = 'unknown'
    """The agent process has not started the cleaning run."""
    RUNNING = 'running'
    WAITING = 'waiting'
    """The device is busy; the next start continues."""
    SUCCEEDED = 'succeeded'
    FAILED = 'failed'


@dataclass(frozen=True, slots=True)
class CleanStepResult:
    """A step that has started. Times are by the clock of the host."""

    name: str
    started_at: datetime
    finished_at: datetime | None = None  # None: the step is running
    proof: str = ''  # the tool with its version, or what was compared; empty: nothing
    error: str = ''  # empty: the step has not failed


@dataclass(frozen=True, slots=True)
class CleanOrder:
    """An order of the conductor to clean a unit."""

    number: int  # rises with each cleaning run of the cloud
    handle: AllocatedHandle  # without an ARQ
    completed: tuple[str, ...] = ()  # names of steps that need not run again


@dataclass(frozen=True, slots=True)
class CleanProgress:
    """The progress of the agent with an order."""

    state: CleanProgressState
    session: str  # of the agent process; only a start with this value is accepted
    steps: tuple[CleanStep, ...] = ()  # all steps, as declared
    results: tuple[CleanStepResult, ...] = ()  # of steps that this process has started
    reason: str = ''  # why the cleaning run waits or has failed

    @property
    def text(self) -> str:
        """The running step, as ``i/n name``; empty if no step has started."""
        if not self.results:
            return ''
        name = self.results[-1].name
        names = [step.name for step in self.steps]
        number = names.index(name) + 1 if name in names else len(self.results)
        return f'{number}/{len(names)} {name}'


class CleaningState(enum.StrEnum):
    """State of a stored clean."""

    RUNNING = 'running'
    SUCCEEDED = 'succeeded'
    FAILED = 'failed'
    ACCEPTED = 'accepted'
    """An operator declared the unit clean; no step has run."""


@dataclass(frozen=True, slots=True)
class CleaningRecord:
    """A stored clean of one unit. It does not identify the user of the unit."""

    uuid: str
    unit: str  # key of the attach handle
    state: CleaningState
    actor: str  # the operator who started or accepted it, or ``CONDUCTOR_ACTOR``
    started_at: datetime
    finished_at: datetime | None = None  # None: it is running
    steps: tuple[CleanStepResult, ...] = ()
    step_count: int = 0  # number of declared steps; 0: not known yet
    reason: str = ''  # why it failed or waits


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit of a device, and whether it is clean."""

    unit: str  # key of the attach handle
    state: CleanState
    policy: CleaningPolicy
    reason: str = ''


@dataclass(frozen=True, slots=True)
class DeviceCleanings:
    """The units of a device and a page of their cleaning runs."""

    units: tuple[UnitState, ...] = ()
    cleanings: tuple[CleaningRecord, ...] = ()
    cursor: str | None = None  # of the page


@dataclass(frozen=True, slots=True)
class UnitSelection:
    """The units that an operator names."""

    device_uuid: str
    unit: str = ''  # key of one attach handle; empty: all units of the device
    # Who decides that ARQs keep other units of the device; empty: nobody.
    name: str = ''


@dataclass(frozen=True, slots=True)
class UncleanUnit:
    """A unit that is not clean, as shown to operators."""

    hostname: str
    device_uuid: str
    unit: str  # key of the attach handle
    state: CleanState
    progress: str  # the running step, as ``i/n name``; empty: none
    reason: str  # why the cleaning run waits or has failed
    since: datetime  # the last change of the unit


_STATE_AFTER_USE: Final = {
    CleaningPolicy.NEVER: CleanState.CLEAN,
    CleaningPolicy.AFTER_USE: CleanState.DIRTY,
    CleaningPolicy.ALWAYS: CleanState.DIRTY,
    CleaningPolicy.ONE_TIME: CleanState.USED,
}


def choose_policy(
    driver: CleaningPolicy, group: Group, *, has_steps: bool
) -> CleaningPolicy:
    """Return the policy for the use of a unit by an ARQ.

    :param has_steps: False: the host removes the unit after its use, so that only
        one-time of the profile has an effect
    """
    try:
        requested = CleaningPolicy(group.properties.get(PROFILE_KEY, driver))
    except ValueError:
        return driver  # only a foreign row can have another value
    return requested if has_steps or requested is CleaningPolicy.ONE_TIME else driver


def state_after_use(policy: CleaningPolicy) -> CleanState:
    """Return the state of a unit that its ARQ has released."""
    return _STATE_AFTER_USE[policy]


def merge_results(
    stored: Sequence[CleanStepResult], reported: Sequence[CleanStepResult]
) -> tuple[CleanStepResult, ...]:
    """Return the results of all agent processes that have worked on a cleaning run.

    A step that a later process repeats replaces the earlier result.
    """
    by_name = {result.name: result for result in (*stored, *reported)}
    return tuple(by_name.values())


def list_completed(results: Sequence[CleanStepResult]) -> tuple[str, ...]:
    """Return the names of the steps that have succeeded."""
    return tuple(
        result.name
        for result in results
        if result.finished_at is not None and not result.error
    )


@dataclass(frozen=True, slots=True)
class CleanWork:
    """A cleaning run that a conductor works on: the order and what is stored of it."""

    order: CleanOrder
    record_uuid: str
    stored: tuple[CleanStepResult, ...] = field(default=())
    rp_uuid: str | None = None  # None: its deployable cannot be scheduled
