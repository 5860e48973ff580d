# SPDX-License-Identifier: Apache-2.0
"""Device profiles and the projects that may use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles, selectors
from cyborg_lite.model.capacity.explanations import Explanation
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


@dataclass(frozen=True, slots=True)
class DeviceProfileService:
    """Manages device profiles.

    A profile that the caller may not see is treated as if it did not exist.
    """

    database: Database
    explanations: ExplanationService
    wake: Callable[[], None] = lambda: None  # called when a job may have been written

    @serves(Conductor.create_device_profiles)
    def create(
        self,
        context: RequestContext,
        new_profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        """Create all of the profiles or none."""
        for profile in new_profiles if possible else ():
            self.explanations.check(profile)
        created = self.database.write(profiles.create_profiles, new_profiles)
        self.wake()
        return created

    @serves(Conductor.list_attribute_declarations)
    def list_declarations(self) -> tuple[AttributeDeclaration, ...]:
        """Return the attributes that selectors may use."""
        return self.database.read(selectors.list_declarations)

    @serves(Conductor.list_device_profiles)
    def list(self, context: RequestContext, query: Query) -> tuple[DeviceProfile, ...]:
        """Return the profiles that match the query and that the caller may see."""
        project = viewing_project(context)
        return self.database.read(profiles.list_profiles, query, project)

    @serves(Conductor.explain_device_profile)
    def explain(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> Explanation:
        """Explain on which hosts the profile fits; see ``ExplanationService``."""
        return self.explanations.explain(viewing_project(context), uuid, hostname)

    @serves(Conductor.count_profile_capacity)
    def count_capacity(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> ProfileCapacity:
        """Return how many further servers fit; see ``ExplanationService``."""
        project = viewing_project(context)
        return self.explanations.count_capacity(project, uuid, hostname)

    @serves(Conductor.change_device_profile)
    def change(
        self,
        context: RequestContext,
        uuid: str,
        change: ProfileChange,
        *,
        possible: bool = False,
        generation: int | None = None,
    ) -> DeviceProfile:
        """Change a profile and return it."""
        project = viewing_project(context)
        if possible and 'groups' in change.fields:
            preview = profiles.preview_change
            self.explanations.check(self.database.read(preview, uuid, change, project))
        profile = self.database.write(
            profiles.update_profile, uuid, change, project, generation
        )
        self.wake()
        return profile

    @serves(Conductor.delete_device_profiles)
    def delete(
        self,
        context: RequestContext,
        names: Sequence[str],
        generation: int | None = None,
    ) -> None:
        """Delete profiles by name or uuid."""
        project = viewing_project(context)
        self.database.write(profiles.delete_profiles, names, project, generation)
        self.wake()

    @serves(Conductor.list_profile_access)
    def list_access(self, context: RequestContext, uuid: str) -> tuple[str, ...]:
        """Return the projects that may use the profile."""
        project = viewing_project(context)
        return self.database.read(profiles.list_projects, uuid, project)

    @serves(Conductor.grant_profile_access)
    def grant_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> tuple[str, ...]:
        """Permit projects to use the profile, and return all that may use it."""
        viewer = viewing_project(context)
        return self.database.write(profiles.grant_access, uuid, projects, viewer)

    @serves(Conductor.revoke_profile_access)
    def revoke_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        """Withdraw the permission of projects to use the profile."""
        viewer = viewing_project(context)
        self.database.write(profiles.revoke_access, uuid, projects, viewer)


def viewing_project(context: RequestContext) -> str | None:
    """Return the project whose profiles the caller sees.

    :returns: None if the caller is an admin and sees the profiles of all projects
    """
    if context.is_admin:
        return None
    return context.project_id or ''
