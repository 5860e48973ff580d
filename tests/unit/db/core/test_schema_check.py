# SPDX-License-Identifier: Apache-2.0
"""The check of the schema at the start of a conductor."""

import pytest

from cyborg_lite.db.core import migration, schema_check
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.daemons import SchemaOutdated


def test_required_revision_is_newest_expansion() -> None:
    expansions = [
        revision.number
        for revision in migration.list_revisions()
        if revision.phase is migration.Phase.EXPAND
    ]
    assert expansions[-1] == schema_check.REQUIRED_REVISION


@pytest.mark.parametrize('is_empty', [True, False])
def test_check_revision_missing_or_earlier_schema_is_refused(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, is_empty: bool
) -> None:
    if not is_empty:
        migration.upgrade(empty_url)
        monkeypatch.setattr(schema_check, 'REQUIRED_REVISION', '9999')
    current = 'none' if is_empty else migration.head_revision()
    database = Database(empty_url)
    with pytest.raises(SchemaOutdated, match=current) as caught:
        database.read(schema_check.check_revision)
    assert 'cyborg-lite-dbsync upgrade' in caught.value.advice
    database.close()
