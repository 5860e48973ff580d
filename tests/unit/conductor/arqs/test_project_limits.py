# SPDX-License-Identifier: Apache-2.0
"""Tests of what is read before a transaction that checks limits."""

from collections.abc import Collection, Mapping

import pytest

from cyborg_lite.clients.limits import KeystoneLimits
from cyborg_lite.conductor.arqs.arqs import LimitService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.arqs.project_limits import ProjectLimits, ResourceUse
from cyborg_lite.rpc.context import RequestContext
from tests.builders.selector_fleets import create_profile


class FakeKeystone(KeystoneLimits):
    """Keystone with the same limit for all resources."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def read_limits(self, project_id: str, names: Collection[str]) -> Mapping[str, int]:
        self.names = set(names)
        return dict.fromkeys(names, 3)


def test_limits_of_classes_of_profile_are_read(database: Database) -> None:
    profile = create_profile(database, {'resources:PGPU': '1'})
    keystone = FakeKeystone()
    context = RequestContext(project_id='p')
    assert LimitService(database, keystone).prepare(context, profile.name) == (
        ProjectLimits('p', {'accelerator_requests': 3, 'class:PGPU': 3})
    )
    assert keystone.names == {'accelerator_requests', 'class:PGPU'}


def test_caller_without_project_has_no_limits(database: Database) -> None:
    service = LimitService(database, FakeKeystone())
    assert service.prepare(RequestContext(), 'any') is None


def test_unknown_profile_is_refused(database: Database) -> None:
    service = LimitService(database, FakeKeystone())
    with pytest.raises(DeviceProfileNotFound):
        service.prepare(RequestContext(project_id='p'), 'unknown')


def test_list_shows_limits_of_keystone_and_use(database: Database) -> None:
    create_profile(database, {'resources:PGPU': '1'})
    service = LimitService(database, FakeKeystone(), 5)
    assert service.list(RequestContext(project_id='p')) == (
        ResourceUse('accelerator_requests', 3, 0),
        ResourceUse('class:PGPU', 3, 0),
        ResourceUse('unbound_requests', 5, 0),
    )
