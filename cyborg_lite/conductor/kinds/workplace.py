# SPDX-License-Identifier: Apache-2.0
"""What a job may need to be done, in one conductor process."""

from dataclasses import dataclass, field

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.audit import AuditRules
from cyborg_lite.conductor.binding import BindRules
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.conductor.programming import Waiting
from cyborg_lite.db.engine import Database
from cyborg_lite.rpc.agent import AgentAPI


@dataclass(frozen=True, slots=True)
class Workplace:
    database: Database
    placement: Placement
    nova: Nova
    agents: AgentAPI
    loader: Loader
    sync: PlacementSync
    metrics: Metrics
    rules: BindRules
    audit_rules: AuditRules
    reap_orphans: bool = False
    waiting: Waiting = field(default_factory=Waiting)
