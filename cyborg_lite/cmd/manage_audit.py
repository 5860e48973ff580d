# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage audit``: ARQs and handles of deleted instances and jobs."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd import database
from cyborg_lite.cmd.parsers import add_command
from cyborg_lite.cmd.text_table import format_table
from cyborg_lite.conductor.audit import Audit, AuditRules
from cyborg_lite.model.audit import AuditFinding, AuditReport

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


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add the command ``audit``."""
    parser = add_command(
        parsers, 'audit', 'find ARQs and handles of deleted instances and jobs'
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
    parser.add_argument('--format', choices=['table', 'json'], default='table')
    parser.set_defaults(run=_audit)


def _audit(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        rules = AuditRules(
            grace=conf.conductor.orphan_grace
            if command.grace is None
            else command.grace,
            require_allocation=conf.conductor.require_allocation,
        )
        nova, placement = Nova.from_config(conf), Placement.from_config(conf)
        audit = Audit(db, nova, placement, rules)
        report = audit.find_orphans()
        outcomes = [
            (finding, _outcome(audit, finding) if command.apply else _REPORTED)
            for finding in report.findings
        ]
        if command.apply:
            audit.delete_former_servers()
    if command.format == 'json':
        print(json.dumps(_document(report, outcomes), indent=2))
    else:
        print(format_table(_rows(outcomes), 'No orphaned ARQ: nothing to do.'))
    for check in report.failed_checks:
        print(check, file=sys.stderr)
    return _status(report, [outcome for _finding, outcome in outcomes])


def _outcome(audit: Audit, finding: AuditFinding) -> str:
    if finding.remedy is None:
        return _REPORTED
    return _DONE if audit.apply_remedy(finding, None) else _SKIPPED


def _status(report: AuditReport, outcomes: Sequence[str]) -> int:
    if _REPORTED in outcomes or _SKIPPED in outcomes:
        return 1
    return 2 if report.failed_checks else 0


def _proposal(finding: AuditFinding) -> str:
    return finding.remedy or 'none: an operator must decide'


def _rows(outcomes: Iterable[tuple[AuditFinding, str]]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('ARQ', 'PROBLEM', 'HOST', 'OUTCOME', 'REASON', 'REMEDY')
    ]
    for finding, outcome in outcomes:
        suspect = finding.suspect
        subject = suspect.uuid, finding.problem, suspect.hostname or '-'
        text = _OUTCOME_TEXTS[outcome]
        rows.append((*subject, text, finding.reason, _proposal(finding)))
    return rows


def _document(
    report: AuditReport, outcomes: Iterable[tuple[AuditFinding, str]]
) -> dict[str, object]:
    """Return the JSON document; its keys are stable."""
    findings = [
        {
            'arq': finding.suspect.uuid,
            'state': finding.suspect.state,
            'instance': finding.suspect.instance_uuid,
            'host': finding.suspect.hostname,
            'handle': finding.handle_uuid,
            'job': finding.job_uuid,
            'touched_at': finding.suspect.touched_at.isoformat(),
            'trouble': finding.problem,
            'reason': finding.reason,
            'proposal': _proposal(finding),
            'outcome': outcome,
        }
        for finding, outcome in outcomes
    ]
    return {'findings': findings, 'doubts': report.failed_checks}
