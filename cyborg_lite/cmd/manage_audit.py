# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage audit``: what is held for nobody, and what can be done."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd import database
from cyborg_lite.cmd.text_table import table
from cyborg_lite.conductor.audit import Audit, AuditRules
from cyborg_lite.model.audit import Finding, Report

# What it has come to, for the table and for programs.
_TOLD = 'told'
_DONE = 'done'
_LEFT = 'left alone, it has changed meanwhile'


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    parser = parsers.add_parser(
        'audit', help='find what is held for servers and jobs that are gone'
    )
    parser.add_argument(
        '--apply', action='store_true', help='do what is proposed, not only say so'
    )
    parser.add_argument(
        '--grace',
        type=float,
        metavar='SECONDS',
        help='leave alone what was touched within that time; [conductor] orphan_grace',
    )
    parser.add_argument('--format', choices=['table', 'json'], default='table')
    parser.set_defaults(run=_audit)


def _audit(conf: cfg.ConfigOpts) -> int:
    asked = conf.command
    with database.opened(conf) as opened:
        rules = AuditRules(
            grace=conf.conductor.orphan_grace if asked.grace is None else asked.grace,
            require_allocation=conf.conductor.require_allocation,
        )
        nova, placement = Nova.configured(conf), Placement.configured(conf)
        audit = Audit(opened, nova, placement, rules)
        report = audit.find()
        outcomes = [
            (finding, _outcome(audit, finding) if asked.apply else _TOLD)
            for finding in report.findings
        ]
        if asked.apply:
            audit.forget_servers()
    if asked.format == 'json':
        print(json.dumps(_document(report, outcomes), indent=2))
    else:
        print(table(_rows(outcomes)))
    for doubt in report.doubts:
        print(doubt, file=sys.stderr)
    return _status(report, [outcome for _finding, outcome in outcomes])


def _outcome(audit: Audit, finding: Finding) -> str:
    if finding.remedy is None:
        return _TOLD
    return _DONE if audit.remedy(finding, None) else _LEFT


def _status(report: Report, outcomes: Sequence[str]) -> int:
    if _TOLD in outcomes or _LEFT in outcomes:
        return 1
    return 2 if report.doubts else 0


def _proposal(finding: Finding) -> str:
    return finding.remedy or 'nothing: a person must decide'


def _rows(outcomes: Iterable[tuple[Finding, str]]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('REQUEST', 'TROUBLE', 'HOST', 'OUTCOME', 'WHY', 'WHAT TO DO')
    ]
    for finding, outcome in outcomes:
        suspect = finding.suspect
        about = suspect.uuid, finding.trouble, suspect.hostname or '-'
        rows.append((*about, outcome, finding.reason, _proposal(finding)))
    return rows


def _document(
    report: Report, outcomes: Iterable[tuple[Finding, str]]
) -> dict[str, object]:
    """In the form that programs may rely on."""
    findings = [
        {
            'arq': finding.suspect.uuid,
            'state': finding.suspect.state,
            'instance': finding.suspect.instance_uuid,
            'host': finding.suspect.hostname,
            'handle': finding.handle_uuid,
            'job': finding.job_uuid,
            'touched_at': finding.suspect.touched_at.isoformat(),
            'trouble': finding.trouble,
            'reason': finding.reason,
            'proposal': _proposal(finding),
            'outcome': outcome,
        }
        for finding, outcome in outcomes
    ]
    return {'findings': findings, 'doubts': report.doubts}
