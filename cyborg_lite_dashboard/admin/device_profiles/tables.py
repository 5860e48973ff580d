# SPDX-License-Identifier: Apache-2.0
"""Table of device profiles with the actions of an administrator."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import tables

from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.project.device_profiles.tables import (
    ExplainProfile,
    ProfilesTable,
)
from cyborg_lite_dashboard.project.device_profiles.views import build_profile_path


class CreateProfile(tables.LinkAction):
    """Link to the form."""

    name = 'create'
    verbose_name = _('Create Device Profile')
    url = 'horizon:admin:device_profiles:create'
    icon = 'plus'
    policy_rules = (('accelerator', 'cyborg:device_profile:create'),)


class EditProfile(tables.LinkAction):
    """Link to the form of a profile that exists."""

    name = 'edit'
    verbose_name = _('Edit')
    url = 'horizon:admin:device_profiles:edit'
    icon = 'pencil'
    policy_rules = (('accelerator', 'cyborg:device_profile:update'),)


class AdminExplainProfile(ExplainProfile):
    """Link to the hosts on which a profile fits."""

    url = 'horizon:admin:device_profiles:explain'


class DeleteProfile(tables.DeleteAction):
    """Deletion of profiles that no request uses."""

    policy_rules = (('accelerator', 'cyborg:device_profile:delete'),)

    @staticmethod
    def action_present(count: int) -> Any:
        """Return the text of the button."""
        return ngettext_lazy('Delete Device Profile', 'Delete Device Profiles', count)

    @staticmethod
    def action_past(count: int) -> Any:
        """Return the text after the deletion."""
        return ngettext_lazy('Deleted Device Profile', 'Deleted Device Profiles', count)

    def delete(self, request: Any, obj_id: str) -> None:
        """Delete one profile."""
        api.connect(request).call('DELETE', build_profile_path(obj_id))


class AdminProfilesTable(ProfilesTable):
    """Device profiles with actions."""

    name = tables.WrappingColumn(
        'name',
        verbose_name=_('Name'),
        link='horizon:admin:device_profiles:detail',
    )

    class Meta(ProfilesTable.Meta):
        """Options of the table."""

        table_actions = (CreateProfile, DeleteProfile)
        row_actions = (EditProfile, AdminExplainProfile, DeleteProfile)
