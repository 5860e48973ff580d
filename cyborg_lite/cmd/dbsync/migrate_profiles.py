# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-dbsync migrate-profiles``: present names in device profiles."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import formats
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.profiles.renames import GroupMigration, migrate_group
from cyborg_lite.model.text import format_count

_RECORD: Final = 'cyborg-lite-profiles.json'
_FORMAT: Final = 1  # of the record

_Groups = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class _Migration:
    """A profile with its groups before and after."""

    uuid: str
    name: str
    before: _Groups
    groups: tuple[GroupMigration, ...]

    @property
    def after(self) -> list[dict[str, str]]:
        return [dict(item.group) for item in self.groups]

    @property
    def has_changes(self) -> bool:
        return any(item.changes for item in self.groups)

    @property
    def problems(self) -> list[str]:
        return [item.problem for item in self.groups if item.problem]


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'migrate-profiles',
        'replace renamed keys, resource classes and traits in device profiles',
        _run,
    )
    parser.add_argument(
        '--dry-run', action='store_true', help='report the changes, and make none'
    )
    parser.add_argument('--undo', metavar='FILE', help='restore the groups in a record')
    parser.add_argument(
        '--record',
        metavar='FILE',
        default=_RECORD,
        help=f'file for the groups before the changes; default: {_RECORD}',
    )


def _run(conf: cfg.ConfigOpts) -> int:
    """Migrate all profiles, or undo that.

    :returns: 1 if a profile cannot be changed
    """
    with database.open_database(conf) as db:
        if conf.command.undo:
            return _undo(db, Path(conf.command.undo))
        return _migrate(conf, db)


def count_former_profiles(db: Database) -> int:
    """Return the number of profiles with names that were replaced."""
    return sum(item.has_changes or bool(item.problems) for item in _list_migrations(db))


def _list_migrations(db: Database) -> list[_Migration]:
    return [
        _Migration(uuid, name, groups, tuple(map(migrate_group, groups)))
        for uuid, (name, groups) in db.read(formats.list_groups).items()
    ]


def _migrate(conf: cfg.ConfigOpts, db: Database) -> int:
    migrations = _list_migrations(db)
    changed = [item for item in migrations if item.has_changes]
    if changed and not conf.command.dry_run:
        # The record precedes the changes: an interrupted command can be undone.
        _extend_record(Path(conf.command.record), changed)
        for item in changed:
            db.write(formats.replace_groups, item.uuid, item.before, item.after)
    _print_changes(changed)
    for item in changed:
        count = db.read(formats.count_instances, item.uuid, item.after)
        if count:
            instances = format_count(count, 'instance')
            print(f'{instances} with former names of {item.name}: both are valid.')
    problems = [(item.name, text) for item in migrations for text in item.problems]
    for name, text in problems:
        print(f'Profile {name} is not changed: {text}. Replace the profile.')
    if not changed:
        print('No device profile has a renamed key, resource class or trait.')
    elif conf.command.dry_run:
        print('Nothing is written.')
    else:
        record = conf.command.record
        print(f'To undo: cyborg-lite-dbsync migrate-profiles --undo {record}')
    return int(bool(problems))


def _print_changes(migrations: Sequence[_Migration]) -> None:
    rows: list[Sequence[object]] = [('PROFILE', 'GROUP', 'FORMER KEY', 'PRESENT KEY')]
    rows += [
        (item.name, number, former, present or 'none')
        for item in migrations
        for number, group in enumerate(item.groups)
        for former, present in group.changes
    ]
    if len(rows) > 1:
        print(format_table(rows))


def _undo(db: Database, path: Path) -> int:
    """Restore the groups of a record.

    :returns: 1 if a profile was changed or deleted since
    """
    status = 0
    for uuid, (before, after) in _read_record(path).items():
        if db.write(formats.replace_groups, uuid, after, before):
            print(f'Profile {uuid} is restored.')
        else:
            print(f'Profile {uuid} has other groups now, and stays as it is.')
            status = 1
    return status


# --- record ---------------------------------------------------------------------------


def _extend_record(path: Path, migrations: Sequence[_Migration]) -> None:
    """Add profiles to a record, which a first run has perhaps written."""
    profiles = _read_record(path) if path.exists() else {}
    for item in migrations:
        profiles[item.uuid] = (item.before, item.after)
    document = {'format': _FORMAT, 'profiles': profiles}
    temporary = path.with_name(f'{path.name}.new')
    temporary.write_text(json.dumps(document, indent=2))
    temporary.replace(path)


def _read_record(path: Path) -> dict[str, tuple[_Groups, _Groups]]:
    """Return the groups before and after, by uuid of the profile.

    :raises InvalidInput: the file is not a record
    """
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
        if document['format'] != _FORMAT:
            raise ValueError('its format is unknown')
        return {
            uuid: (before, after)
            for uuid, (before, after) in document['profiles'].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f'{path} is not a record of migrated profiles: {error}.'
        raise InvalidInput(reason=reason) from None
