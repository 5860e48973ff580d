# SPDX-License-Identifier: Apache-2.0
"""A conductor whose lists come from a database, for API tests with real SQL."""

from typing import Any

from cyborg_lite.db import arqs, deployables, devices, services
from cyborg_lite.db.device_profiles import profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import administration
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.conductor import FakeConductor


def carry(query: Query) -> Query:
    """Return a query as the conductor receives it."""
    return wire.load(Query, wire.dump(query))


# Any: each list has records of its own class.
class StoredConductor(FakeConductor):
    """Reads lists of all projects from a database; other calls change nothing there."""

    def __init__(self, database: Database) -> None:
        """Store the database."""
        super().__init__()
        self.database = database

    def list_devices(self, context: RequestContext, query: Query) -> Any:
        """Return the devices that match the query."""
        return self.database.read(devices.list_devices, carry(query))

    def list_deployables(self, context: RequestContext, query: Query) -> Any:
        """Return the deployables that match the query."""
        return self.database.read(deployables.list_deployables, carry(query))

    def list_attributes(self, context: RequestContext, query: Query) -> Any:
        """Return the attributes that match the query."""
        return self.database.read(deployables.list_attributes, carry(query))

    def list_arqs(self, context: RequestContext, query: Query) -> Any:
        """Return the ARQs that match the query."""
        return self.database.read(arqs.list_arqs, carry(query), Scope(None))

    def list_device_profiles(self, context: RequestContext, query: Query) -> Any:
        """Return the device profiles that match the query."""
        return self.database.read(profiles.list_profiles, carry(query))

    def list_jobs(self, context: RequestContext, query: Query) -> Any:
        """Return the jobs that match the query."""
        return self.database.read(administration.list_job_page, carry(query))

    def list_services(self, context: RequestContext, query: Query) -> Any:
        """Return the daemons that match the query."""
        return self.database.read(services.list_services, carry(query))
