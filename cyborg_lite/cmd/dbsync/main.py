# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-dbsync: creates or upgrades the database schema."""

from cyborg_lite import runtime  # noqa: F401  # isort: skip  # must be imported first: it may monkey-patch

import sys
from collections.abc import Sequence
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.dbsync import migrate_profiles, online_migration
from cyborg_lite.cmd.support.json_output import run_command
from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.db.core import migration

PROG: Final = 'cyborg-lite-dbsync'
_DESCRIPTION: Final = 'Create, upgrade or show the schema of the database.'


@one_line_errors(PROG, 1)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: 0, or 1 with the reason
    """
    conf = configuration.parse(
        arguments, PROG, command_line=[_COMMANDS], description=_DESCRIPTION
    )
    configuration.set_up_logging(conf)
    return run_command(conf, lambda: conf.command.run(conf) or 0)


def _upgrade(conf: cfg.ConfigOpts) -> None:
    before = migration.current_revision(conf.database.connection)
    target = conf.command.revision
    if conf.command.expand:
        target = migration.expand_target(conf.database.connection)
    elif conf.command.contract:
        online_migration.check_contraction(conf)
    migration.upgrade(conf.database.connection, target)
    after = migration.current_revision(conf.database.connection)
    if before == after:
        print(f'The schema is already at revision {after}.')
    else:
        print(f'The schema was upgraded from revision {before} to {after}.')
    if migration.has_pending_contraction(conf.database.connection):
        print(
            'Later revisions remove or rename columns. When all daemons are of this '
            f'version, run `{PROG} upgrade --contract`.'
        )


def _current(conf: cfg.ConfigOpts) -> None:
    revision = migration.current_revision(conf.database.connection)
    head = migration.head_revision()
    if revision == head:
        print(f'{revision} (head)')
    else:
        print(f'{revision}; run `{PROG} upgrade` to reach {head}')


def _history(_conf: cfg.ConfigOpts) -> None:
    for revision in migration.list_revisions():
        mark = ' (head)' if revision.is_head else ''
        print(f'{revision.number}{mark}: {revision.title}')


def _create(conf: cfg.ConfigOpts) -> None:
    path = migration.create_revision(conf.database.connection, conf.command.title)
    print(f'Created {path}. Review it before you commit it.')


def _add_parsers(parsers: Parsers) -> None:
    upgrade = add_command(parsers, 'upgrade', 'upgrade the schema', _upgrade)
    phase = upgrade.add_mutually_exclusive_group()
    phase.add_argument('revision', nargs='?', default='head', help='default: head')
    phase.add_argument(
        '--expand',
        action='store_true',
        help='only add tables and columns; daemons of the previous version still run',
    )
    phase.add_argument(
        '--contract',
        action='store_true',
        help='also remove and rename columns; refused while daemons of another version '
        'run or online data migrations have rows left',
    )
    migrate_profiles.add_parsers(parsers)
    online_migration.add_parsers(parsers)
    text = 'print the current revision of the database'
    add_command(parsers, 'current', text, _current)
    add_command(parsers, 'history', 'print all revisions, oldest first', _history)
    text = 'create a new revision file (for developers)'
    create = add_command(parsers, 'create', text, _create)
    create.add_argument('title', help='short description of the change')


_COMMANDS: Final = cfg.SubCommandOpt('command', title='commands', handler=_add_parsers)

if __name__ == '__main__':
    sys.exit(main())
