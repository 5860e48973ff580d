# SPDX-License-Identifier: Apache-2.0
"""Rows of several tables, and functions that list them."""

from collections.abc import Callable
from typing import Any

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.db.hosts import services
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.queries import Query
from tests.builders.rows import add_card, add_profile
from tests.builders.service_rows import record_heartbeat

ANY_PROJECT = Scope(project_id=None)
ListRows = Callable[[Database, Query], Any]


def list_profiles(database: Database, query: Query) -> Any:
    """Return the device profiles that match the query."""
    return database.read(profiles.list_profiles, query)


def list_arqs(database: Database, query: Query) -> Any:
    """Return the ARQs of all projects that match the query."""
    return database.read(arqs.list_arqs, query, ANY_PROJECT)


def list_devices(database: Database, query: Query) -> Any:
    """Return the devices that match the query."""
    return database.read(devices.list_devices, query)


def list_services(database: Database, query: Query) -> Any:
    """Return the services that match the query."""
    return database.read(services.list_services, query)


def add_three_rows_each(database: Database) -> None:
    """Add three devices, device profiles and services."""
    for number in range(3):
        add_card(database, 1)
        add_profile(database, [{'resources:PGPU': '1'}])
        record_heartbeat(database, f'compute-{number}')
