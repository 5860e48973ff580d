# SPDX-License-Identifier: Apache-2.0
"""Requests that are bound, for tests of what becomes of them."""

from cyborg_lite.db import binding, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Kind, NewJob
from tests.fakes.rows import OWNER, add_arqs, add_card, bindings


def bound(database: Database, number: int, *, needs_host: bool = True) -> list[str]:
    """Requests of one instance, on a card of their own; no job is left."""
    rp_uuid = add_card(database, number, needs_host=needs_host)
    uuids = add_arqs(database, number)
    everybody = Scope(project_id=None)
    wanted = bindings(uuids, rp_uuid)
    job = database.write(
        binding.accept, wanted, everybody, NewJob(Kind.BIND, {}), OWNER
    )
    told = NewJob(Kind.NOVA_EVENT, {})
    claimed = database.write(binding.claim, job, uuids, None, told)
    following = claimed.job
    if claimed.handles:
        following = database.write(binding.succeed, following, uuids, None, told)
    database.write(jobs.finish, following)
    return uuids
