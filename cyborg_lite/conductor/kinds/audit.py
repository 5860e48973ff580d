# SPDX-License-Identifier: Apache-2.0
"""Looks for what nobody needs any more."""

from typing import Final

from cyborg_lite.conductor.audit import Audit
from cyborg_lite.conductor.audit_rounds import AuditHandler
from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.model.jobs import Kind

KIND: Final = Kind.AUDIT


def handler(workplace: Workplace) -> Handler:
    audit = Audit(
        workplace.database, workplace.nova, workplace.placement, workplace.audit_rules
    )
    return AuditHandler(workplace.database, audit, workplace.reap_orphans)
