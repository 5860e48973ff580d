# SPDX-License-Identifier: Apache-2.0
"""The code of the next release: a copy of this checkout with a small patch.

The patch adds what releases usually add: a column that replaces another one, a column
that a migration fills, a stored field of a device that agents report, a method of each
RPC interface, and a job type.
"""

import inspect
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from cyborg_lite import version
from cyborg_lite.agent.arqs import recovery
from cyborg_lite.conductor import service, transactions
from cyborg_lite.db.core import online_migrations, schema_check, tables
from cyborg_lite.model import operations
from cyborg_lite.model.inventory import host_report
from cyborg_lite.rpc import interface, upgrade_levels
from tests.builders.next_release import label_job, labels, schema
from tests.support.sources import PACKAGE, ROOT

VERSION: Final = '1.1.0'
SLOT: Final = 'of the next release'
"""What its agents report in a field of a device that this release does not know."""
JOB_TYPE: Final = 'label'

_LEVELS: Final = {'conductor': '1.0', 'agent': '1.0'}  # of this release
_COPIES: Final = {'next_labels': labels, 'next_label_job': label_job}


@dataclass(frozen=True, slots=True)
class _Insertion:
    """Lines to insert before a line of a module."""

    module: ModuleType
    before: str
    lines: str


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A text of a module that another one replaces."""

    module: ModuleType
    old: str
    new: str


_REPLACEMENTS: Final = (
    _Replacement(version, repr(version.VERSION), repr(VERSION)),
    _Replacement(
        upgrade_levels,
        '_RELEASES: Final[tuple[tuple[str, Mapping[str, str]], ...]] = ()',
        f"_RELEASES = (('1.0.0', {_LEVELS}),)",
    ),
    _Replacement(schema_check, repr(schema.NEWEST), repr(schema.EXPANSION)),
    _Replacement(
        tables,
        'request_id: Mapped[str | None] = mapped_column(String(64))\n    created_at',
        "request_id: Mapped[str | None] = mapped_column('origin', String(64))\n"
        '    created_at',
    ),
    _Replacement(
        online_migrations,
        'MIGRATIONS: Final[tuple[OnlineMigration, ...]] = ()',
        'from cyborg_lite import next_labels\n'
        'MIGRATIONS = (OnlineMigration(next_labels.NAME, next_labels.fill_labels,'
        ' next_labels.has_unlabelled),)',
    ),
)
_INSERTIONS: Final = (
    _Insertion(
        tables,
        '    conflict: Mapped[str]',
        '    label: Mapped[str | None] = mapped_column(String(64))\n'
        '    slot: Mapped[str | None] = mapped_column(String(64))',
    ),
    _Insertion(
        host_report,
        '    vendor_board_info: str | None = None',
        f'    slot: str = {SLOT!r}',
    ),
    _Insertion(operations, "    SELECTORS = 'selectors'", f"    LABEL = '{JOB_TYPE}'"),
    _Insertion(
        service,
        '    OperationKind.SELECTORS: lambda',
        '    OperationKind.LABEL: lambda needs: next_label_job.LabelHandler('
        'needs.database, needs.agents, next_labels.set_labels),',
    ),
    _Insertion(
        service,
        'HANDLERS: Final',
        'from cyborg_lite import next_label_job, next_labels',
    ),
    _Insertion(
        interface,
        '    # --- hosts of agents',
        "    @Terms(since='1.1')\n"
        '    def list_labels(self, context: RequestContext) -> tuple[str, ...]:\n'
        '        """Return the labels of all devices."""',
    ),
    _Insertion(
        transactions,
        '    @serves(Conductor.echo)',
        '    @serves(Conductor.list_labels)\n'
        '    def list_labels(self) -> tuple[str, ...]:\n'
        '        from cyborg_lite.next_labels import list_labels\n'
        '        return tuple(map(str, self.database.read(list_labels)))',
    ),
    _Insertion(
        interface,
        '    def scan(',
        "    @Terms(since='1.1')\n"
        '    def read_label(self, context: RequestContext, host: str) -> str:\n'
        '        """Return the label of the host."""',
    ),
    _Insertion(
        recovery,
        '    @serves_host(Agents.read_boot_id)',
        '    @serves_host(Agents.read_label)\n'
        '    def read_label(self) -> str:\n'
        "        return 'read from the agent'",
    ),
)


def write_tree(folder: Path) -> Path:
    """Write the code of the next release into a new folder.

    :returns: the entry for the Python path
    """
    ignored = shutil.ignore_patterns('__pycache__')
    for name in (PACKAGE.name, 'alembic'):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    schema.add_revisions(folder / 'alembic')
    for name, module in _COPIES.items():
        shutil.copy(_find_file(module), folder / PACKAGE.name / f'{name}.py')
    for change in _REPLACEMENTS:
        _replace(folder, change.module, change.old, change.new)
    for insertion in _INSERTIONS:
        text = f'{insertion.lines}\n{insertion.before}'
        _replace(folder, insertion.module, insertion.before, text)
    return folder


def _replace(folder: Path, module: ModuleType, old: str, new: str) -> None:
    """Replace a text that the copy of a module contains once.

    :raises AssertionError: the module has changed; adapt the patch
    """
    file = folder / _find_file(module).relative_to(ROOT)
    text = file.read_text()
    assert text.count(old) == 1, f'{file} contains {text.count(old)} times {old!r}'
    file.write_text(text.replace(old, new))


def _find_file(module: ModuleType) -> Path:
    return Path(inspect.getfile(module))
