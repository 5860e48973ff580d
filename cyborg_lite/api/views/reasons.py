# SPDX-License-Identifier: Apache-2.0
"""Reasons of states and events of devices in the responses of the API."""

import re
from typing import Final

_UUID: Final = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_HIDDEN: Final = '(hidden)'


def render_reason(reason: str, *, shows_uuids: bool) -> str:
    """Return a reason, without UUIDs unless the caller is an administrator.

    They may be the UUIDs of ARQs and instances of other projects.
    """
    return reason if shows_uuids or not reason else _UUID.sub(_HIDDEN, reason)
