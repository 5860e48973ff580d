# SPDX-License-Identifier: Apache-2.0
"""Concurrent changes with an expected generation, on each real database."""

from collections.abc import Callable
from functools import partial

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.requests import GenerationConflict
from tests.builders.generation_changes import (
    CHANGES,
    Change,
    change_profile,
    create_profile,
)
from tests.support.concurrent_calls import run_at_once

_WRITERS = 4
_ROUNDS = 10


@pytest.mark.parametrize(('create', 'change', 'missing'), CHANGES)
def test_one_of_concurrent_changes_wins(
    database: Database,
    create: Callable[[Database], str],
    change: Change,
    missing: type[CyborgError],
) -> None:
    uuid = create(database)
    results = run_at_once([partial(change, database, uuid, 0)] * _WRITERS)
    refused = [result for result in results if result in (GenerationConflict, missing)]
    assert len(refused) == _WRITERS - 1


def test_concurrent_writers_lose_no_change(database: Database) -> None:
    uuid = create_profile(database)
    for generation in range(_ROUNDS):
        change = partial(change_profile, database, uuid, generation)
        results = run_at_once([change] * _WRITERS)
        assert results.count(GenerationConflict) == _WRITERS - 1
