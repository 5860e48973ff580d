# SPDX-License-Identifier: Apache-2.0
"""The conductor that is killed at a step finds the step of each transaction."""

from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from tests.chaos import crashing_conductor
from tests.servers.databases import database_fixture

database = database_fixture('sqlite')


def count_rows(_session: Session, number: int) -> int:
    return number


class Killed(Exception):
    """Replaces the signal that ends the process."""


def die() -> None:
    raise Killed


@pytest.mark.parametrize('transaction', [count_rows, partial(count_rows, number=2)])
def test_arm_finds_step_of_partial_transaction(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    transaction: Callable[..., int],
) -> None:
    monkeypatch.setattr(Database, 'write', Database.write)  # restored at the end
    monkeypatch.setattr(crashing_conductor, '_die', die)
    crashing_conductor.arm('before:count_rows')
    with pytest.raises(Killed):
        database.write(transaction, number=1)
    assert database.write(partial(lambda _session, number: number, number=3)) == 3
