# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-dbsync migrate-profiles``."""

from pathlib import Path

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, Deployable
from cyborg_lite.db.profiles.formats import list_groups
from cyborg_lite.db.providers import providers
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import HOST, add_profile
from tests.unit.cmd.dbsync.conftest import Run

OLD_TRAIT = 'CUSTOM_GPU_PRODUCT_ID_1EB8'
OLD = {'resources:PGPU': '1', f'trait:{OLD_TRAIT}': 'required'}
PRESENT = {'resources:PGPU': '1', 'trait:CUSTOM_NVIDIA_1EB8': 'required'}


@pytest.fixture
def migrate(run: Run, tmp_path: Path) -> Run:
    """Return a function that runs the command with further arguments."""
    record = str(tmp_path / 'old')
    return lambda *arguments: run('migrate-profiles', '--record', record, *arguments)


def groups_of(database: Database, name: str) -> list[dict[str, str]]:
    """Return the groups of a profile."""
    profiles = dict(database.read(list_groups).values())
    return [dict(group) for group in profiles[name]]


def test_migrate_replaces_groups_and_undo_restores(
    migrate: Run, database: Database, tmp_path: Path
) -> None:
    name = add_profile(database, [{'resources:FPGA': '1'}, OLD])
    status, out, _ = migrate('--dry-run')
    assert (status, 'Nothing is written.' in out) == (0, True)
    assert groups_of(database, name)[1] == OLD
    status, out, _ = migrate()
    assert groups_of(database, name) == [{'resources:FPGA': '1'}, PRESENT]
    assert (status, f'trait:{OLD_TRAIT}' in out) == (0, True)
    assert 'trait:CUSTOM_NVIDIA_1EB8' in out
    status, out, _ = migrate()
    assert (status, 'No device profile' in out) == (0, True)
    assert migrate('--undo', str(tmp_path / 'old'))[0] == 0
    assert groups_of(database, name)[1] == OLD


def test_undo_profile_changed_since_stays(
    migrate: Run, database: Database, tmp_path: Path
) -> None:
    name = add_profile(database, [OLD])
    migrate()
    migrate('--undo', str(tmp_path / 'old'))
    status, out, _ = migrate('--undo', str(tmp_path / 'old'))
    assert (status, 'has other groups now' in out) == (1, True)
    assert groups_of(database, name) == [OLD]


def test_migrate_ambiguous_profile_is_reported(
    migrate: Run, database: Database
) -> None:
    group = {'resources:FPGA': '1', 'resources:CUSTOM_ACCELERATOR_FPGA': '1'}
    name = add_profile(database, [group])
    status, out, _ = migrate()
    assert (status, f'Profile {name} is not changed' in out) == (1, True)
    assert groups_of(database, name) == [group]


def test_undo_other_file_prints_error(migrate: Run, tmp_path: Path) -> None:
    file = tmp_path / 'other'
    file.write_text('[]')
    status, _, errors = migrate('--undo', str(file))
    assert (status, 'not a record of migrated profiles' in errors) == (1, True)


def test_provider_has_both_names_while_instance_uses_former(
    database: Database,
) -> None:
    (arq,), _instance = create_bound_instance(database, 1)
    database.write(_set_traits, arq)

    def read_traits() -> set[str]:
        (row,) = database.read(providers.list_providers_of_host, HOST)
        return set(row.traits)

    assert read_traits() == {'CUSTOM_NVIDIA_1EB8', OLD_TRAIT}
    database.write(_unbind, arq)
    assert read_traits() == {'CUSTOM_NVIDIA_1EB8'}


def _set_traits(session: Session, arq: str) -> None:
    session.execute(update(Deployable).values(traits=['CUSTOM_NVIDIA_1EB8']))
    statement = update(Arq).where(Arq.uuid == arq)
    session.execute(statement.values(device_profile_group=OLD))
    assert session.scalar(select(Arq.hostname)) == HOST


def _unbind(session: Session, arq: str) -> None:
    session.execute(update(Arq).where(Arq.uuid == arq).values(instance_uuid=None))
