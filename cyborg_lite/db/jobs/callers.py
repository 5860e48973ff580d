# SPDX-License-Identifier: Apache-2.0
"""The caller of the API request that caused a job, in the payload of the job.

Every conductor that runs the job logs these ids and passes them to other services.
"""

from collections.abc import Mapping
from typing import Any

from oslo_context import context as oslo_context

from cyborg_lite.model.jobs import CALLER_FIELDS, CALLER_KEY


def add_caller(payload: Mapping[str, Any], request_id: str | None) -> dict[str, Any]:
    """Return the payload with the caller of the current request.

    :param request_id: request of the job; another request than the current one adds
        nothing
    """
    current = oslo_context.get_current()
    if request_id is None or current is None or current.request_id != request_id:
        return dict(payload)
    fields = {name: getattr(current, name) for name in CALLER_FIELDS}
    caller = {name: value for name, value in fields.items() if value}
    return {**payload, CALLER_KEY: caller} if caller else dict(payload)
