# SPDX-License-Identifier: Apache-2.0
"""ARQs and their history in the responses of the API."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_4, V2_5, V2_6, V2_7
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable, since
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, ListView, View
from cyborg_lite.errors.registry import describe_code
from cyborg_lite.model.arqs.arqs import HANDLE_SHOWN_STATES, Actor, Arq, State, Step
from cyborg_lite.model.profiles.device_profiles import AttachTarget

# Microversions 2.0 to 2.3 do not have these states. A device that is being rebuilt is
# shown as neither ready nor failed: its bind has started. The ARQs of a host that is
# down keep their last state.
_SHOWN_AS: Final = {
    State.PROVISIONING: State.BIND_STARTED,
    State.UNKNOWN: State.BOUND,
}

# Nova uses 2.0 and attaches every handle that it reads.
_HANDLE_SHOWN: Final = frozenset({AttachTarget.VM})
_HANDLE_SHOWN_AT_2_4: Final = _HANDLE_SHOWN | {AttachTarget.HOST}


class ArqView(View):
    """An ARQ; the attach handle is set when its device is ready."""

    _path = 'v2/accelerator_requests/{uuid}'

    uuid = UUID
    state = enum_of(State)
    device_profile_name = str
    device_profile_group_id = int
    hostname = nullable(str)
    device_rp_uuid = nullable(UUID)
    instance_uuid = nullable(UUID)
    project_id = nullable(str)
    attach_handle_type = str
    attach_handle_uuid = nullable(UUID)
    attach_handle_info = {str: str}
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)
    status_reason = since(V2_4, nullable(str))
    error_code = since(V2_5, nullable(str))
    attach_target = since(V2_4, enum_of(AttachTarget))
    deployable_uuid = since(V2_4, nullable(UUID))
    device_uuid = since(V2_4, nullable(UUID))
    state_times = since(V2_4, {str: datetime})
    alternative = since(V2_6, int)

    @staticmethod
    def render_state(arq: Arq, call: Call) -> State:
        """Return the state, or before 2.4 the nearest state of 2.0."""
        is_newer = call.microversion >= V2_4
        return arq.state if is_newer else _SHOWN_AS.get(arq.state, arq.state)

    @staticmethod
    def render_status_reason(arq: Arq, call: Call) -> str | None:
        """Return the reason of the last failure, in the words for the caller."""
        return select_reason(arq.status_reason, arq.error_code, call)

    @staticmethod
    def render_attach_handle_type(arq: Arq, call: Call) -> str:
        """Return the type of the handle; empty: it is not shown."""
        return (arq.attach_handle_type or '') if _shows_handle(arq, call) else ''

    @staticmethod
    def render_attach_handle_uuid(arq: Arq, call: Call) -> str | None:
        """Return the uuid of the handle; None: it is not shown."""
        return arq.attach_handle_uuid if _shows_handle(arq, call) else None

    @staticmethod
    def render_attach_handle_info(arq: Arq, call: Call) -> Mapping[str, str]:
        """Return the address of the handle; empty: it is not shown."""
        return arq.attach_handle_info if _shows_handle(arq, call) else {}


def select_reason(reason: str | None, code: str | None, call: Call) -> str | None:
    """Return the reason of a failure; for tenants, the cause of its code.

    A reason may come from a driver or tool, and name the host, paths and devices.

    :param code: None: not known
    """
    return reason if reason is None or call.sees_hosts else describe_code(code)


def _shows_handle(arq: Arq, call: Call) -> bool:
    if arq.state not in HANDLE_SHOWN_STATES:
        return False
    is_newer = call.microversion >= V2_4
    return arq.attach_target in (_HANDLE_SHOWN_AT_2_4 if is_newer else _HANDLE_SHOWN)


class ArqList(ListView):
    """A page of ARQs."""

    arqs = [ArqView]
    arqs_links = NEXT_LINKS


class EventView(View):
    """A step of an ARQ; ``duration`` is in seconds, null for the last step.

    ``instance_uuid`` is null for steps of an ARQ that no instance has.
    """

    step = str
    actor = enum_of(Actor)
    at = datetime
    duration = nullable(float)
    reason = nullable(str)
    error_code = since(V2_5, nullable(str))
    arq_uuid = since(V2_7, UUID)
    instance_uuid = since(V2_7, nullable(UUID))

    @staticmethod
    def render_duration(step: Step, call: Call) -> float | None:
        """Return the seconds until the next step."""
        if step.ended_at is None:
            return None
        return max(0.0, (step.ended_at - step.at).total_seconds())

    @staticmethod
    def render_reason(step: Step, call: Call) -> str | None:
        """Return the reason of a failure, in the words for the caller."""
        return select_reason(step.reason, step.error_code, call)


class EventList(ListView):
    """Steps of ARQs: before 2.7 all, oldest first; then a page, the latest first."""

    events = [EventView]
    events_links = since(V2_7, NEXT_LINKS)
