# SPDX-License-Identifier: Apache-2.0
"""What may be asked about device profiles, and who sees which."""

from collections.abc import Sequence

from cyborg_lite.conductor.explaining import Explaining
from cyborg_lite.db import device_profiles, profile_access
from cyborg_lite.db.engine import Database
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.explanations import Explanation
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext


class Profiles:
    """A profile that the caller does not see is treated as one that is not there."""

    def __init__(self, database: Database, explaining: Explaining) -> None:
        self._database = database
        self._explaining = explaining

    def create(
        self, profiles: Sequence[DeviceProfile], possible: bool
    ) -> tuple[DeviceProfile, ...]:
        for profile in profiles if possible else ():
            self._explaining.check(profile.name, profile.groups)
        return self._database.write(device_profiles.create_all, profiles)

    def list(self, context: RequestContext, query: Query) -> tuple[DeviceProfile, ...]:
        return self._database.read(device_profiles.listed, query, viewer(context))

    def explain(
        self, context: RequestContext, uuid: str, hostname: str | None
    ) -> Explanation:
        return self._explaining.explain(viewer(context), uuid, hostname)

    def change(
        self,
        context: RequestContext,
        uuid: str,
        wanted: ProfileChange,
        possible: bool,
    ) -> DeviceProfile:
        if possible and wanted.groups is not None:
            self._explaining.check(wanted.name or uuid, wanted.groups)
        return self._database.write(
            device_profiles.change_one, uuid, wanted, viewer(context)
        )

    def delete(self, context: RequestContext, names: Sequence[str]) -> None:
        self._database.write(device_profiles.delete, names, viewer(context))

    def access(self, context: RequestContext, uuid: str) -> tuple[str, ...]:
        return self._database.read(profile_access.projects, uuid, viewer(context))

    def grant(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> tuple[str, ...]:
        return self._database.write(
            profile_access.grant, uuid, projects, viewer(context)
        )

    def revoke(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        self._database.write(profile_access.revoke, uuid, projects, viewer(context))


def viewer(context: RequestContext) -> str | None:
    """The project whose profiles the caller sees; None: an admin, who sees all."""
    if 'admin' in context.roles:
        return None
    return context.project_id or ''
