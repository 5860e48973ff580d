# SPDX-License-Identifier: Apache-2.0
"""Reads the payloads of jobs."""

from collections.abc import Mapping
from typing import Any, TypeVar

from cyborg_lite import codec
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.errors.jobs import InvalidJobPayload
from cyborg_lite.model.jobs import JobPayload

P = TypeVar('P', bound=JobPayload)


# Any: JSON values.
def read_payload(kind: type[P], payload: Mapping[str, Any]) -> P:
    """Return the payload of a job; unknown fields are ignored.

    :raises InvalidJobPayload: a field is missing or has a value of another type
    """
    try:
        return codec.load(kind, payload)
    except MalformedData as error:
        raise InvalidJobPayload(type=kind.TYPE, reason=error.kwargs['reason']) from None
