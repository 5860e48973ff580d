# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-dbsync migrate-profiles``."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.dbsync import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, Deployable
from cyborg_lite.db.profiles.formats import list_groups
from cyborg_lite.db.providers import providers
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import HOST, add_profile

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]

OLD_TRAIT = 'CUSTOM_GPU_PRODUCT_ID_1EB8'
OLD = {'resources:PGPU': '1', f'trait:{OLD_TRAIT}': 'required'}
PRESENT = {'resources:PGPU': '1', 'trait:CUSTOM_NVIDIA_1EB8': 'required'}


@pytest.fixture
def run(
    write_config: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Return a function that runs the command with further arguments."""
    monkeypatch.setattr(configuration, 'set_up_logging', lambda _conf: None)
    options = [*write_config(), 'migrate-profiles', '--record', str(tmp_path / 'old')]
    return lambda *arguments: main.main([*options, *arguments])


def groups_of(database: Database, name: str) -> list[dict[str, str]]:
    """Return the groups of a profile."""
    profiles = dict(database.read(list_groups).values())
    return [dict(group) for group in profiles[name]]


def test_migrate_replaces_groups_and_undo_restores(
    run: Run, database: Database, tmp_path: Path, capsys: Out
) -> None:
    name = add_profile(database, [{'resources:FPGA': '1'}, OLD])
    assert run('--dry-run') == 0
    assert groups_of(database, name)[1] == OLD
    assert 'Nothing is written.' in capsys.readouterr().out
    assert run() == 0
    assert groups_of(database, name) == [{'resources:FPGA': '1'}, PRESENT]
    output = capsys.readouterr().out
    assert f'trait:{OLD_TRAIT}' in output
    assert 'trait:CUSTOM_NVIDIA_1EB8' in output
    assert run() == 0
    assert 'No device profile' in capsys.readouterr().out
    assert run('--undo', str(tmp_path / 'old')) == 0
    assert groups_of(database, name)[1] == OLD


def test_undo_profile_changed_since_stays(
    run: Run, database: Database, tmp_path: Path, capsys: Out
) -> None:
    name = add_profile(database, [OLD])
    run()
    run('--undo', str(tmp_path / 'old'))
    assert run('--undo', str(tmp_path / 'old')) == 1
    assert 'has other groups now' in capsys.readouterr().out
    assert groups_of(database, name) == [OLD]


def test_migrate_ambiguous_profile_is_reported(
    run: Run, database: Database, capsys: Out
) -> None:
    group = {'resources:FPGA': '1', 'resources:CUSTOM_ACCELERATOR_FPGA': '1'}
    name = add_profile(database, [group])
    assert run() == 1
    assert f'Profile {name} is not changed' in capsys.readouterr().out
    assert groups_of(database, name) == [group]


def test_undo_other_file_prints_error(run: Run, tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / 'other'
    file.write_text('[]')
    assert run('--undo', str(file)) == 1
    assert 'not a record of migrated profiles' in capsys.readouterr().err


def test_provider_has_both_names_while_instance_uses_former(
    run: Run, database: Database
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
