# SPDX-License-Identifier: Apache-2.0
"""Limits of projects: what is counted, and what is refused."""

from functools import partial

import pytest

from cyborg_lite.db.arqs import arqs, project_limits, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.errors.arqs import ProjectLimitExceeded
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.arqs.project_limits import ARQS, UNLIMITED, ProjectLimits
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import PROJECT, add_arqs, add_profile
from tests.builders.table_rows import count_rows

ANY = Scope(project_id=None)


@pytest.fixture
def profile(database: Database) -> str:
    database.write(project_limits.add_lock, PROJECT)
    return add_profile(database, [{'resources:PGPU': '2'}])


def create(database: Database, profile: str, **limits: int) -> int:
    """Create ARQs within limits; return their number."""
    limits_by_name = {
        ARQS: limits.get('arqs', UNLIMITED),
        'class:PGPU': limits.get('pgpu', -1),
    }
    return create_limited(database, profile, ProjectLimits(PROJECT, limits_by_name))


def create_limited(database: Database, profile: str, limits: ProjectLimits) -> int:
    work = partial(arqs.create_arqs, profile_name=profile, project_id=PROJECT)
    return len(database.write(project_limits.create_arqs, limits, work))


def test_create_within_limits_succeeds(database: Database, profile: str) -> None:
    assert create(database, profile, arqs=4, pgpu=4) == 2
    assert create(database, profile, arqs=4, pgpu=4) == 2
    assert create(database, profile) == 2


@pytest.mark.parametrize('limits', [{'arqs': 3}, {'pgpu': 3}])
def test_create_beyond_limit_creates_nothing(
    database: Database, profile: str, limits: dict[str, int]
) -> None:
    create(database, profile, **limits)
    with pytest.raises(ProjectLimitExceeded, match='would be 4, the limit is 3'):
        create(database, profile, **limits)
    assert count_rows(database, Arq) == 2


def test_other_projects_and_classes_do_not_count(
    database: Database, profile: str
) -> None:
    add_arqs(database, 5, 'c' * 32)
    assert create(database, profile, arqs=2, pgpu=2) == 2
    fpga = add_profile(database, [{'resources:FPGA': '3'}])
    database.write(arqs.create_arqs, fpga, PROJECT)
    assert create(database, profile, pgpu=4) == 2


def test_arqs_being_deleted_do_not_count(database: Database, profile: str) -> None:
    uuids = create_bound_arqs(database, 2)
    with pytest.raises(ProjectLimitExceeded):
        create(database, profile, arqs=2)
    database.write(release.delete_arqs, uuids, ANY, True, None)
    assert create(database, profile, arqs=2) == 2


def test_unbound_arqs_are_limited(database: Database, profile: str) -> None:
    create_bound_arqs(database, 2)
    limits = ProjectLimits(PROJECT, None, 2)
    assert create_limited(database, profile, limits) == 2
    text = 'unbound_requests would be 4, the limit is 2'
    with pytest.raises(ProjectLimitExceeded, match=text):
        create_limited(database, profile, limits)


def test_class_without_limit_is_refused(database: Database, profile: str) -> None:
    with pytest.raises(ProjectLimitExceeded, match='class:PGPU'):
        create_limited(database, profile, ProjectLimits(PROJECT, {ARQS: UNLIMITED}))
