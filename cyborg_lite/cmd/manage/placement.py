# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage placement audit``: compares Placement with the database."""

import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_group
from cyborg_lite.cmd.support.text_table import Columns
from cyborg_lite.conductor.jobs.runner import create_owner
from cyborg_lite.conductor.ownership.allocations import AllocationCheck, Pace
from cyborg_lite.conductor.ownership.sharing import SharingCheck
from cyborg_lite.conductor.providers import pruning
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncMode
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.ownership.allocations import AllocationProblem
from cyborg_lite.model.text import format_count
from cyborg_lite.model.traits import OWNER_CYBORG

# Outcomes. Programs parse them in the JSON output, so the values do not change.
_PLANNED: Final = 'to be repaired'
_DONE: Final = 'repaired'
_SKIPPED: Final = 'left as it is'
_UNKNOWN: Final = 'cannot be told'
_UNKNOWN_HOST: Final = 'left: no agent of the host is known; --host has it removed'

# The same for readers of the table.
_OUTCOME_TEXTS: Final = {
    _PLANNED: 'to be repaired',
    _DONE: 'repaired',
    _SKIPPED: 'not changed',
    _UNKNOWN: 'unknown',
    _UNKNOWN_HOST: 'not changed: unknown host; remove it with --host',
}

_PRUNE_WARNING: Final = (
    'Warning: nova-compute caches the providers of its host. After the deletion of a '
    'provider, builds on its host fail until the cache expires. Restart nova-compute '
    'on these hosts, or prune while no instance is built.'
)


@dataclass(frozen=True, slots=True)
class Line:
    """A difference of one provider and the outcome of the audit for it."""

    host: str
    provider: str  # empty: the line concerns the host as a whole
    uuid: str
    difference: str
    outcome: str

    def as_json(self) -> dict[str, str]:
        """Return the JSON object; its keys are stable."""
        return {
            'host': self.host,
            'provider': self.provider,
            'uuid': self.uuid,
            'what': self.difference,
            'outcome': self.outcome,
        }


_COLUMNS: Final[Columns] = {
    'HOST': 'host',
    'PROVIDER': 'provider',
    'OUTCOME': lambda line: _OUTCOME_TEXTS[line.outcome],
    'DIFFERENCE': 'difference',
}


def add_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'placement', 'compare with Placement')
    text = 'list differences; the exit status is 1 if there is one'
    audit = add_command(commands, 'audit', text, _audit, has_table=True)
    audit.add_argument(
        '--apply',
        action='store_true',
        help='repair the providers of this service in Placement, and delete '
        'allocations without an ARQ whose server does not exist in Nova',
    )
    audit.add_argument(
        '--prune',
        action='store_true',
        help='as --apply; also delete the empty providers of removed devices and the '
        'unused custom traits and resource classes of this service',
    )
    # The name `host` is taken by an option of this service.
    audit.add_argument(
        '--host', dest='of_host', action='append', help='repeatable; default: all'
    )


def _audit(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    if command.prune:
        print(_PRUNE_WARNING, file=sys.stderr)
    with database.open_database(conf) as db:
        placement = Placement.from_config(conf)
        sync = PlacementSync(db, placement, conf.conductor.hosts_without_compute)
        owner = create_owner(conf.conductor.job_lease)
        auditor = _Auditor(sync, HostSyncJobs(db, sync, owner), prunes=command.prune)
        hosts = command.of_host or db.read(device_owners.list_hosts)
        applies = command.apply or command.prune
        doubts = database.list_doubts(db, applies=applies)
        # Pruning deletes the records of the names.
        published = db.read(providers.list_published_traits)
        lines = [Line('', '', '', doubt, _UNKNOWN) for doubt in doubts]
        lines += (line for host in hosts for line in auditor.audit(host, applies))
        sharing = SharingCheck(db, placement)
        for host in hosts:
            # Conflicts with another service that uses our resource classes.
            lines += _list_until_error(
                host,
                (
                    Line(host, item.provider_name, item.rp_uuid, item.reason, _SKIPPED)
                    for item in sharing.check_host(host)
                ),
            )
        pace = Pace(conf.conductor.audit_rate, time.sleep)
        check = AllocationCheck(db, placement, Nova.from_config(conf), pace)
        unowned = _unowned_lines(check, hosts, applies)
        lines += _list_until_error('', unowned)
        if not command.of_host:
            unknown = _unknown_host_lines(auditor, placement, hosts)
            lines += _list_until_error('', unknown)
            if command.prune:
                texts = pruning.prune_names(db, placement, published)
                pruned = (Line('', '', '', text, _DONE) for text in texts)
                lines += _list_until_error('', pruned)
    empty = f'Placement is up to date for {format_count(len(hosts), "host")}.'
    print_records(conf, lines, _COLUMNS, empty, Line.as_json)
    outcomes = {line.outcome for line in lines}
    if _UNKNOWN in outcomes:
        return 2
    return int(bool(outcomes - {_DONE}))


@dataclass(frozen=True, slots=True)
class _Auditor:
    """Compares hosts with Placement."""

    sync: PlacementSync
    jobs: HostSyncJobs
    prunes: bool

    def audit(self, host: str, applies: bool) -> Iterator[Line]:
        """Yield the differences of a host.

        :param applies: remove the differences
        """
        yield from _list_until_error(host, self._audit(host, applies))

    def _audit(self, host: str, applies: bool) -> Iterator[Line]:
        if applies:
            mode = SyncMode(deep=True, prune=self.prunes)
            result = self.jobs.sync_in_mode(host, mode)
        else:
            result = self.sync.rehearse(host)
        outcome = _DONE if applies else _PLANNED
        for change in result.changes:
            yield Line(host, change.name, change.uuid, change.description, outcome)
        for problem in result.problems:
            yield Line(host, problem.name, problem.uuid, problem.reason, _SKIPPED)


def _list_until_error(host: str, lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the lines, and a line for the error that ends them."""
    try:
        yield from lines
    except CyborgError as error:
        yield Line(host, '', '', error.full_text, _UNKNOWN)


def _unowned_lines(
    check: AllocationCheck, hosts: Collection[str], applies: bool
) -> Iterator[Line]:
    """Yield the allocations without an ARQ on the hosts.

    :param applies: delete those whose server does not exist in Nova
    """
    for item in check.find_unowned():
        if item.hostname not in hosts:
            continue
        is_leak = item.problem is AllocationProblem.LEAKED
        outcome = _PLANNED if is_leak and not applies else _SKIPPED
        if is_leak and applies and check.clear(item):
            outcome = _DONE
        name, uuid = item.provider_name, item.rp_uuid
        yield Line(item.hostname, name, uuid, item.reason, outcome)


def _unknown_host_lines(
    auditor: _Auditor, placement: Placement, known_hosts: Collection[str]
) -> Iterator[Line]:
    """Yield the providers of hosts that are not in the database.

    They may belong to another deployment, so they are reported but never removed.
    """
    hosts = placement.list_hosts_with_trait(OWNER_CYBORG)
    for host in sorted(hosts - set(known_hosts)):
        for line in auditor.audit(host, applies=False):
            yield replace(line, outcome=_UNKNOWN_HOST)
