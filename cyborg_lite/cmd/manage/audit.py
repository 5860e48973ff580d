# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage audit``: what remains without an instance, a job or an ARQ."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.conductor.arqs.audit import Audit, AuditRules
from cyborg_lite.conductor.ownership.allocations import AllocationCheck, Pace
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.arqs.audit import AuditFinding, Remedy
from cyborg_lite.model.ownership.allocations import UnownedAllocation

_HEADER: Final = 'ARQ', 'PROBLEM', 'HOST', 'OUTCOME', 'REASON', 'REMEDY'
_NOTHING: Final = 'No orphaned ARQ: nothing to do.'
_NONE_KNOWN: Final = 'No orphaned ARQ is known.'
_UNDECIDED: Final = 'none: an operator must decide'

# Outcomes. Programs parse them in the JSON output, so the values do not change.
_REPORTED: Final = 'told'
_DONE: Final = 'done'
_SKIPPED: Final = 'left alone, it has changed meanwhile'

# The same for readers of the table.
_OUTCOME_TEXTS: Final = {
    _REPORTED: 'reported',
    _DONE: 'repaired',
    _SKIPPED: 'skipped: changed since the audit',
}


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'audit',
        'find ARQs and handles of deleted instances and jobs, and allocations without '
        'an ARQ',
        _audit,
        has_table=True,
    )
    parser.add_argument(
        '--apply', action='store_true', help='apply the proposed remedies'
    )
    parser.add_argument(
        '--grace',
        type=float,
        metavar='SECONDS',
        help='skip newer ARQs; default: [conductor] orphan_grace',
    )


def _audit(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        doubts = database.list_doubts(db, applies=command.apply)
        rules = AuditRules(
            grace=conf.conductor.orphan_grace
            if command.grace is None
            else command.grace,
            require_allocation=conf.conductor.require_allocation,
            pace=Pace(conf.conductor.audit_rate, time.sleep),
        )
        nova, placement = Nova.from_config(conf), Placement.from_config(conf)
        audit = Audit(db, nova, placement, rules)
        report = audit.find_orphans()
        outcomes = [
            (finding, _apply_remedy(audit, finding) if command.apply else _REPORTED)
            for finding in report.findings
        ]
        if command.apply:
            audit.delete_former_servers()
        allocations, obstacle = _check_allocations(audit.allocations, command.apply)
    failed_checks = (*doubts, *report.failed_checks, *obstacle)
    findings = [*_documents(outcomes), *_allocation_documents(allocations)]
    if command.format == 'json':
        document = {'findings': findings, 'doubts': failed_checks}
        print(json.dumps(document, indent=2))
    else:
        rows = [_HEADER, *map(_build_row, findings)]
        print(format_table(rows, _NONE_KNOWN if doubts else _NOTHING))
    for check in failed_checks:
        print(check, file=sys.stderr)
    if {outcome for _, outcome in (*outcomes, *allocations)} - {_DONE}:
        return 1
    return 2 if failed_checks else 0


def _check_allocations(
    check: AllocationCheck, applies: bool
) -> tuple[list[tuple[UnownedAllocation, str]], tuple[str, ...]]:
    """Return the allocations without an ARQ with their outcomes.

    :param applies: delete those whose server does not exist in Nova
    :returns: also the reason if some allocations are unknown
    """
    outcomes: list[tuple[UnownedAllocation, str]] = []
    try:
        for item in check.find_unowned():
            outcome = _REPORTED
            if applies and not item.has_server:
                outcome = _DONE if check.clear(item) else _SKIPPED
            outcomes.append((item, outcome))
    except CyborgError as error:
        return outcomes, (
            f'Allocations without an ARQ cannot be determined: {error.text}',
        )
    return outcomes, ()


def _apply_remedy(audit: Audit, finding: AuditFinding) -> str:
    if finding.remedy is None:
        return _REPORTED
    return _DONE if audit.apply_remedy(finding, None) else _SKIPPED


def _build_row(document: dict[str, Any]) -> Sequence[object]:
    subject = document['arq'] or '-', document['trouble'], document['host'] or '-'
    outcome = _OUTCOME_TEXTS[document['outcome']]
    return (*subject, outcome, document['reason'], document['proposal'])


# The keys of the JSON objects are stable.


def _documents(
    outcomes: Iterable[tuple[AuditFinding, str]],
) -> Iterator[dict[str, Any]]:
    for finding, outcome in outcomes:
        yield {
            'arq': finding.suspect.uuid,
            'state': finding.suspect.state,
            'instance': finding.suspect.instance_uuid,
            'host': finding.suspect.hostname,
            'handle': finding.handle_uuid,
            'job': finding.job_uuid,
            'touched_at': finding.suspect.touched_at.isoformat(),
            'trouble': finding.problem,
            'reason': finding.reason,
            'proposal': finding.remedy or _UNDECIDED,
            'outcome': outcome,
        }


def _allocation_documents(
    outcomes: Iterable[tuple[UnownedAllocation, str]],
) -> Iterator[dict[str, Any]]:
    absent = dict.fromkeys(('arq', 'state', 'handle', 'job', 'touched_at'))
    for item, outcome in outcomes:
        yield {
            **absent,
            'instance': item.consumer_uuid,
            'host': item.hostname,
            'provider': item.rp_uuid,
            'since': str(item.unowned_since),
            'trouble': item.problem,
            'reason': item.reason,
            'proposal': _UNDECIDED if item.has_server else Remedy.CLEAR,
            'outcome': outcome,
        }
