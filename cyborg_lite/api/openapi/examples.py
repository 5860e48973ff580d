# SPDX-License-Identifier: Apache-2.0
"""Examples of the API document: recorded calls in the folder ``samples``.

A functional test records a call of each operation at the newest microversion. It
compares the samples with the responses of the service.
"""

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Sample:
    """Bodies of a recorded call; they are JSON."""

    status: int
    request_body: Any = None  # None: the request has no body
    response_body: Any = None  # None: the response has no body


# The API document is not recorded, because it contains the samples.
_DOCUMENT: Final = Sample(
    200,
    response_body={
        'openapi': '3.1.0',
        'info': {'title': 'Accelerator API', 'version': '2.0'},
        'paths': {},
    },
)


def load_sample(operation_id: str) -> Sample | None:
    """Return the recorded call of an operation; None: no call is recorded."""
    if operation_id == 'show_api_document':
        return _DOCUMENT
    file = resources.files(__package__) / 'samples' / f'{operation_id}.json'
    if not file.is_file():
        return None
    call = json.loads(file.read_text())
    answer = call['answer']
    return Sample(answer['status'], call['request'].get('body'), answer.get('body'))
