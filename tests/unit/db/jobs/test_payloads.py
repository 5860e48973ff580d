# SPDX-License-Identifier: Apache-2.0
"""Tests of the payloads of jobs as the job table stores them."""

import pytest

from cyborg_lite import codec
from cyborg_lite.db.jobs.queue import read_payload
from cyborg_lite.errors.jobs import InvalidJobPayload
from cyborg_lite.model.jobs import BindPayload, ReleasePayload

BIND = BindPayload('instance', ('arq-1', 'arq-2'), ('provider',), 'project', 3)


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'arq_uuids': 'arq-1'}, 'arq_uuids'),
        ({'arq_uuids': [1]}, 'arq_uuids'),
        ({'project_id': 1}, 'project_id'),
        ({'generation': True}, 'generation'),
    ],
)
def test_read_payload_of_other_type_raises(
    changes: dict[str, object], reason: str
) -> None:
    stored = codec.dump(BIND) | changes
    with pytest.raises(InvalidJobPayload, match=f'A bind job .*{reason}'):
        read_payload(BindPayload, stored)


def test_read_payload_without_field_raises() -> None:
    with pytest.raises(InvalidJobPayload, match='instance_uuid'):
        read_payload(BindPayload, {'arq_uuids': [], 'provider_uuids': []})


def test_read_payload_ignores_unknown_fields() -> None:
    stored = {'handle_uuid': 'one', 'deep': 1}
    assert read_payload(ReleasePayload, stored) == ReleasePayload('one')
