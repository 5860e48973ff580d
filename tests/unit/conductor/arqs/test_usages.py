# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of units by projects."""

from cyborg_lite.conductor.arqs.usages import UsageService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.usages import UsageQuery, UsageReport


def test_use_ends_at_end_of_query(database: Database) -> None:
    report = UsageService(database).sum(UsageQuery(0, 1_000))
    assert report == UsageReport((), end=1_000)
