# SPDX-License-Identifier: Apache-2.0
"""Conductor in memory, whose device profiles are in a database as in the real one."""

from collections.abc import Sequence
from typing import cast

from cyborg_lite.conductor.device_profiles import DeviceProfileService
from cyborg_lite.conductor.explanations import ExplanationService
from cyborg_lite.db.engine import Database
from cyborg_lite.model.device_profiles import DeviceProfile, Limits, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.conductor import FakeConductor

LIMITS = Limits(groups=4, accelerators=16)


class RecordedChecks:
    """Explanations that only record which profiles are to be checked."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def check(self, name: str, *_groups: object) -> None:
        """Record the name."""
        self.names.append(name)


class StoredProfiles(FakeConductor):
    """Conductor with the service of the real one, for calls about device profiles."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.checks = RecordedChecks()
        explanations = cast(ExplanationService, self.checks)
        self.service = DeviceProfileService(database, explanations, limits=LIMITS)

    def create_device_profiles(
        self,
        context: RequestContext,
        profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        received = wire.load_all(DeviceProfile, wire.dump(list(profiles)))
        return self.service.create(context, received, possible)

    def list_device_profiles(
        self, context: RequestContext, query: Query, *, parents: bool = False
    ) -> tuple[DeviceProfile, ...]:
        listed = self.service.list(context, query, parents=parents)
        return wire.load_all(DeviceProfile, wire.dump(listed))

    def change_device_profile(
        self,
        context: RequestContext,
        uuid: str,
        change: ProfileChange,
        *,
        possible: bool = False,
        generation: int | None = None,
    ) -> DeviceProfile:
        received = wire.load(ProfileChange, wire.dump(change))
        return self.service.change(context, uuid, received, possible, generation)

    def delete_device_profiles(
        self,
        context: RequestContext,
        names: Sequence[str],
        generation: int | None = None,
    ) -> None:
        self.service.delete(context, names, generation)
