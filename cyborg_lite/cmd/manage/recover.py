# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage recover``: rebuilds the ARQs that a database has lost."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.support import database, message_keys
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.cmd.support.text_table import Columns
from cyborg_lite.conductor.arqs.instance_recovery import InstanceRecovery
from cyborg_lite.conductor.ownership.allocations import AllocationCheck, Pace
from cyborg_lite.model.arqs.instance_recovery import RecoveryAction, RecoveryStep
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_agents
from cyborg_lite.rpc.security.keys import Role

# Outcomes. Programs parse them in the JSON output, so the values do not change.
_PLANNED: Final = 'planned'
_DONE: Final = 'done'
_CHANGED: Final = 'changed meanwhile'
_KEPT: Final = 'kept'
_UNEXPLAINED: Final = 'unexplained'


@dataclass(frozen=True, slots=True)
class Line:
    """A step and its outcome."""

    step: RecoveryStep
    outcome: str

    @property
    def is_open(self) -> bool:
        """Return True if something remains to be done or explained."""
        return self.outcome not in (_DONE, _KEPT)

    def as_json(self) -> dict[str, object]:
        """Return the JSON object; its keys are stable."""
        step = self.step
        return {
            'host': step.hostname,
            'instance': step.instance_uuid,
            'action': step.action,
            'units': [unit.key for unit in step.units],
            'arqs': [arq.uuid for arq in step.arqs],
            'replaced_arqs': list(step.outdated),
            'outcome': self.outcome,
            'reason': step.reason,
        }


_COLUMNS: Final[Columns] = {
    'HOST': lambda line: line.step.hostname,
    'INSTANCE': lambda line: line.step.instance_uuid,
    'UNITS': lambda line: line.step.keys,
    'ACTION': lambda line: line.step.action,
    'OUTCOME': 'outcome',
    'REASON': lambda line: line.step.reason,
}


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'recover',
        'rebuild the ARQs that a restored or empty database lacks, from what agents, '
        'Placement and Nova say; the exit status is 1 if an instance remains',
        _recover,
        has_table=True,
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        '--plan', action='store_true', help='only show what --apply writes (default)'
    )
    modes.add_argument(
        '--apply',
        action='store_true',
        help='write it, and end the quarantine of the database if nothing remains',
    )
    parser.add_argument(
        '--accept',
        action='append',
        default=[],
        metavar='ID',
        help='uuid of an instance, or name of a host, whose rows need not be explained '
        'to end the quarantine; repeatable',
    )


def _recover(conf: cfg.ConfigOpts) -> int:
    applies = conf.command.apply
    with _open_recovery(conf) as recovery:
        lines = [Line(s, _find_outcome(recovery, s, applies)) for s in recovery.plan()]
        open_ids = {line.step.subject for line in lines if line.is_open}
        if applies and open_ids <= {*conf.command.accept}:
            number = recovery.end_quarantine()
            if number is not None:
                text = f'The quarantine has ended: incarnation {number} begins.'
                print(text, file=sys.stderr)
        quarantine = recovery.find_quarantine()
    empty = 'No instance lacks an ARQ: nothing to do.'
    print_records(conf, lines, _COLUMNS, empty, Line.as_json)
    if quarantine is not None:
        print(f'The database is in quarantine: {quarantine.reason}', file=sys.stderr)
    return int(bool(open_ids) or quarantine is not None)


def _find_outcome(recovery: InstanceRecovery, step: RecoveryStep, applies: bool) -> str:
    if not step.is_change:
        return _KEPT if step.action is RecoveryAction.KEEP else _UNEXPLAINED
    if not applies:
        return _PLANNED
    return _DONE if recovery.apply(step) else _CHANGED


@contextmanager
def _open_recovery(conf: cfg.ConfigOpts) -> Iterator[InstanceRecovery]:
    """Connect to the database, the message bus and the other services."""
    signer = message_keys.create_signer(conf, Role.CONDUCTOR)
    bus = transport.connect(conf, signer=signer, identity=None)
    try:
        with database.open_database(conf) as db:
            nova, placement = Nova.from_config(conf), Placement.from_config(conf)
            pace = Pace(conf.conductor.audit_rate, time.sleep)
            yield InstanceRecovery(
                db,
                nova,
                connect_agents(bus, conf.conductor.agent_timeout),
                AllocationCheck(db, placement, nova, pace),
            )
    finally:
        bus.cleanup()
