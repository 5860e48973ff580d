# SPDX-License-Identifier: Apache-2.0
"""Jobs as they are stored, and operations as clients read them."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from cyborg_lite.model.operations import (
    Operation,
    OperationKind,
    OperationState,
    SubjectType,
)


def build_operation(kind: OperationKind, **fields: Any) -> Operation:
    """Return an operation that has just started."""
    return Operation(
        **{
            'uuid': str(uuid4()),
            'kind': kind,
            'state': OperationState.RUNNING,
            'subject_type': SubjectType.DEPLOYABLE,
            'subject_id': str(uuid4()),
            'parameters': {},
            'project_id': None,
            'user_id': None,
            'request_id': None,
            'progress': 0,
            'steps': (),
            'reason': '',
            'error_code': None,
            'result': None,
            'created_at': datetime(2026, 11, 21, 5, 53, 43, tzinfo=UTC),
            **fields,
        }
    )
