# SPDX-License-Identifier: Apache-2.0
"""ARQs in the responses of the API."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import V2_4, V2_20, Microversion
from cyborg_lite.api.views.content import (
    Content,
    build_content,
    build_self_link,
    render_links,
    render_time,
)
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_content
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable, optional, since
from cyborg_lite.api.views.view import View
from cyborg_lite.model.arqs import HANDLE_SHOWN_STATES, Arq, State
from cyborg_lite.model.device_profiles import AttachTarget

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
    links = [Link]
    created_at = datetime
    updated_at = nullable(datetime)
    status_reason = since(V2_4, nullable(str))
    attach_target = since(V2_4, enum_of(AttachTarget))
    deployable_uuid = since(V2_4, nullable(UUID))
    device_uuid = since(V2_4, nullable(UUID))
    state_times = since(V2_4, {str: datetime})
    alternative = since(V2_20, int)

    @staticmethod
    def build(arq: Arq, call: Call) -> Content:
        """Build the view."""
        content = _build_arq(arq, call.links, call.microversion)
        return select_content(content, call.fields)


def _build_arq(arq: Arq, links: Links, version: Microversion) -> Content:
    is_newer = version >= V2_4
    state = arq.state if is_newer else _SHOWN_AS.get(arq.state, arq.state)
    target = arq.attach_target
    visible_targets = _HANDLE_SHOWN_AT_2_4 if is_newer else _HANDLE_SHOWN
    ready = arq.state in HANDLE_SHOWN_STATES and target in visible_targets
    content: Content = {
        'uuid': arq.uuid,
        'state': state.value,
        'device_profile_name': arq.device_profile_name,
        'device_profile_group_id': arq.device_profile_group_id,
        'hostname': arq.hostname,
        'device_rp_uuid': arq.device_rp_uuid,
        'instance_uuid': arq.instance_uuid,
        'project_id': arq.project_id,
        'attach_handle_type': (arq.attach_handle_type or '') if ready else '',
        'attach_handle_uuid': arq.attach_handle_uuid if ready else None,
        'attach_handle_info': dict(arq.attach_handle_info) if ready else {},
        'links': build_self_link(links, f'v2/accelerator_requests/{arq.uuid}'),
        'created_at': arq.created_at.isoformat(),
        'updated_at': render_time(arq.updated_at),
    }
    if is_newer:
        times = arq.state_times.items()
        content['status_reason'] = arq.status_reason
        content['attach_target'] = target.value
        content['deployable_uuid'] = arq.deployable_uuid
        content['device_uuid'] = arq.device_uuid
        content['state_times'] = {str(name): at.isoformat() for name, at in times}
    if version >= V2_20:
        content['alternative'] = arq.alternative
    return content


class ArqList(View):
    """A page of ARQs."""

    arqs = [ArqView]
    arqs_links = since(V2_4, optional([Link]))

    @staticmethod
    def build(
        arqs: Iterable[Arq], call: Call, next_links: Any = types.Unset
    ) -> Content:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        links, version = call.links, call.microversion
        return build_content(
            arqs=[
                select_content(_build_arq(arq, links, version), call.fields)
                for arq in arqs
            ],
            arqs_links=render_links(next_links),
        )
