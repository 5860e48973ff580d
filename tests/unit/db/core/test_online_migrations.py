# SPDX-License-Identifier: Apache-2.0
"""Data migrations that run in batches beside the daemons."""

import pytest
from sqlalchemy.orm import Session

from cyborg_lite.db.core import online_migrations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.online_migrations import OnlineMigration, list_unfinished


def _migrate_nothing(_session: Session, _limit: int) -> int:
    return 0


@pytest.mark.parametrize(
    ('rows', 'unfinished'), [((0, 0), ()), ((0, 7), ('second',)), ((1, 0), ('first',))]
)
def test_list_unfinished_names_migrations_with_rows(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    rows: tuple[int, ...],
    unfinished: tuple[str, ...],
) -> None:
    first, second = rows
    migrations = (
        OnlineMigration('first', _migrate_nothing, lambda _session: first > 0),
        OnlineMigration('second', _migrate_nothing, lambda _session: second > 0),
    )
    monkeypatch.setattr(online_migrations, 'MIGRATIONS', migrations)
    assert database.read(list_unfinished) == unfinished
