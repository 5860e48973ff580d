# SPDX-License-Identifier: Apache-2.0
"""Limits of projects: what to read before the transaction that creates ARQs."""

from cyborg_lite.clients.limits import KeystoneLimits
from cyborg_lite.conductor.profiles.device_profiles import viewing_project
from cyborg_lite.db.arqs import arqs, project_limits
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.arqs.project_limits import (
    ARQS,
    UNBOUND,
    UNLIMITED,
    ProjectLimits,
    ResourceUse,
    list_resources,
    name_units,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


class LimitService:
    """Prepares the check of limits. Keystone is not called within a transaction."""

    def __init__(
        self,
        database: Database,
        limits: KeystoneLimits | None,
        max_unbound: int = UNLIMITED,
    ) -> None:
        """Store the arguments.

        :param limits: None: Keystone has no limits
        :param max_unbound: ARQs of a project that were never bound
        """
        self._database = database
        self._limits = limits
        self._max_unbound = max_unbound
        self._locked_projects: set[str] = set()  # projects whose lock exists

    def prepare(
        self, context: RequestContext, profile_name: str
    ) -> ProjectLimits | None:
        """Return the limits of the project of the caller.

        The Compute service binds its ARQs at once and deletes them, so it may create
        any number. An administrator may, too.

        :returns: None if the caller has no project, or no limit applies
        :raises DeviceProfileNotFound: the profile does not exist or is not visible
        :raises ServiceUnavailable: Keystone does not answer
        """
        project = context.project_id
        if project is None:
            return None
        is_bounded = not (context.is_admin or context.service_request)
        unbound = self._max_unbound if is_bounded else UNLIMITED
        limits = None
        if self._limits is not None:
            viewer = viewing_project(context)
            groups = self._database.read(arqs.list_profile_groups, profile_name, viewer)
            limits = self._limits.read_limits(project, list_resources(groups))
        elif unbound == UNLIMITED:
            return None
        if project not in self._locked_projects:
            self._database.write(project_limits.add_lock, project)
            self._locked_projects.add(project)
        return ProjectLimits(project, limits, unbound)

    @serves(Conductor.list_limits)
    def list(self, context: RequestContext) -> tuple[ResourceUse, ...]:
        """Return the limits of the project of the caller, and what it uses.

        The resources are those that the project uses, or that its device profiles
        request.
        """
        project = context.project_id or ''
        used = self._database.read(project_limits.count_used, project)
        viewer = viewing_project(context)
        visible = self._database.read(profiles.list_profiles, Query(), viewer)
        classes = {name for profile in visible for name in profile.resource_classes()}
        names = {ARQS, *map(name_units, classes), *used} - {UNBOUND}
        limits = dict.fromkeys(names, UNLIMITED)
        if self._limits is not None:
            limits |= self._limits.read_limits(project, names)
        limits[UNBOUND] = self._max_unbound
        return tuple(
            ResourceUse(name, limits[name], used[name]) for name in sorted(limits)
        )
