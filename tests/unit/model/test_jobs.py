# SPDX-License-Identifier: Apache-2.0
"""Tests of job payloads and their JSON form."""

import pytest

from cyborg_lite import codec
from cyborg_lite.errors.jobs import InvalidJobPayload
from cyborg_lite.model.jobs import (
    BindPayload,
    NewJob,
    add_bind_generation,
    read_bind_generation,
)
from cyborg_lite.model.operations import OperationKind


def test_add_bind_generation_returns_changed_copy() -> None:
    new_job = NewJob(
        OperationKind.BIND, codec.dump(BindPayload('instance', (), ())), key='k'
    )
    changed = add_bind_generation(new_job, 5, has_alternatives=False)
    assert read_bind_generation(changed.payload) == 5
    assert read_bind_generation(new_job.payload) == 0
    assert changed.key == 'k'


def test_read_bind_generation_of_other_type_raises() -> None:
    with pytest.raises(InvalidJobPayload, match='not a number'):
        read_bind_generation({'generation': True})
