# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage import``: take over a database of OpenStack Cyborg."""

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import add_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.cyborg_import import source as cyborg_source
from cyborg_lite.cyborg_import.importing import CyborgImport
from cyborg_lite.cyborg_import.plan import (
    ImportNote,
    ImportPlan,
    NoteKind,
    Table,
)
from cyborg_lite.cyborg_import.planning import TESTED_REVISIONS
from cyborg_lite.errors.base import InvalidInput

_RECORD: Final = 'cyborg-lite-import.json'
_FORMAT: Final = 1  # of the record


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add the command ``import``."""
    parser = add_command(
        parsers,
        'import',
        'import the database of OpenStack Cyborg; the exit status is 1 if a row is '
        'refused',
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument(
        '--from', dest='source', metavar='URL', help='database of Cyborg'
    )
    action.add_argument('--undo', metavar='FILE', help='delete the rows in a record')
    parser.add_argument(
        '--dry-run', action='store_true', help='report the import, and change nothing'
    )
    parser.add_argument(
        '--record',
        metavar='FILE',
        default=_RECORD,
        help=f'file for the uuids of the imported rows; default: {_RECORD}',
    )
    parser.add_argument('--format', choices=['table', 'json'], default='table')
    parser.set_defaults(run=_run)


def _run(conf: cfg.ConfigOpts) -> int:
    with _open_import(conf) as service:
        if conf.command.undo:
            return _undo(conf, service)
        return _import(conf, service)


@contextmanager
def _open_import(conf: cfg.ConfigOpts) -> Iterator[CyborgImport]:
    with database.open_database(conf) as db:
        placement = Placement.from_config(conf)
        yield CyborgImport(db, placement, Nova.from_config(conf))


def _import(conf: cfg.ConfigOpts, service: CyborgImport) -> int:
    command = conf.command
    source = cyborg_source.read_source(command.source)
    plan = service.plan(source)
    if not command.dry_run:
        # The record precedes the rows: if the command is interrupted, an undo finds
        # all of them.
        _extend_record(Path(command.record), plan.list_uuids())
        service.write(plan)
    if command.format == 'json':
        print(json.dumps(_document(plan), indent=2))
    else:
        _print_revision(source.revision)
        _print_plan(plan)
        print('Nothing is written.' if command.dry_run else _describe_undo(command))
    return int(any(note.kind is NoteKind.REFUSED for note in plan.notes))


def _describe_undo(command: Any) -> str:
    return f'To undo the import: cyborg-lite-manage import --undo {command.record}'


def _undo(conf: cfg.ConfigOpts, service: CyborgImport) -> int:
    """Delete the rows of a record.

    :returns: 1 if a row stays
    """
    deleted, notes = service.undo(_read_record(Path(conf.command.undo)))
    if conf.command.format == 'json':
        document = {'deleted': deleted, 'notes': _note_documents(notes)}
        print(json.dumps(document, indent=2))
    else:
        rows = [(table, deleted.get(table, '-')) for table in Table]
        print(format_table([('TABLE', 'DELETED'), *rows]))
        _print_notes(notes)
    return int(bool(notes))


# --- output ---------------------------------------------------------------------------


def _print_revision(revision: str) -> None:
    release = TESTED_REVISIONS.get(revision)
    if release:
        print(f'The source is a database of Cyborg {release}.')
    else:
        print(f'The schema {revision or "without a revision"} is not a tested one.')


def _print_plan(plan: ImportPlan) -> None:
    uuids = plan.list_uuids()
    rows = [
        (
            table,
            len(uuids[table]),
            plan.stored.get(table, 0),
            plan.count_refused(table),
        )
        for table in Table
    ]
    print(format_table([('TABLE', 'IMPORTED', 'IMPORTED BEFORE', 'REFUSED'), *rows]))
    _print_notes(plan.notes)


def _print_notes(notes: Sequence[ImportNote]) -> None:
    if not notes:
        return
    print()
    rows = [(note.kind, note.table, note.uuid, note.reason) for note in notes]
    print(format_table([('ROW', 'TABLE', 'UUID', 'REASON'), *rows]))


def _document(plan: ImportPlan) -> dict[str, object]:
    """Return the JSON object; its keys are stable."""
    return {
        'imported': plan.list_uuids(),
        'imported_before': plan.stored,
        'notes': _note_documents(plan.notes),
    }


def _note_documents(notes: Iterable[ImportNote]) -> list[dict[str, str]]:
    return [dataclasses.asdict(note) for note in notes]


# --- record ---------------------------------------------------------------------------


def _extend_record(path: Path, uuids: Mapping[Table, Collection[str]]) -> None:
    """Add uuids to a record, which a first import has perhaps written."""
    recorded = _read_record(path) if path.exists() else {}
    tables = {
        str(table): sorted({*recorded.get(table, ()), *uuids[table]}) for table in Table
    }
    temporary = path.with_name(f'{path.name}.new')
    temporary.write_text(json.dumps({'format': _FORMAT, 'rows': tables}, indent=2))
    temporary.replace(path)


def _read_record(path: Path) -> dict[Table, list[str]]:
    """Return the uuids in a record, by table.

    :raises InvalidInput: the file is not a record of an import
    """
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
        if document['format'] != _FORMAT:
            raise ValueError('its format is unknown')
        return {table: list(document['rows'][table]) for table in Table}
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f'{path} is not a record of an import: {error}.'
        raise InvalidInput(reason=reason) from None
