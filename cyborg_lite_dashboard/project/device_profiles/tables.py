# SPDX-License-Identifier: Apache-2.0
"""Table of device profiles."""

from typing import Any

from django.template.defaultfilters import capfirst, yesno
from django.utils.translation import gettext_lazy as _
from horizon import tables

from cyborg_lite_dashboard.records import RecordTable


def describe_groups(profile: Any) -> str:
    """Return the accelerators of a profile, such as ``2 x PGPU; 1 x FPGA``."""
    return '; '.join(
        ', '.join(
            f'{amount} x {key.partition(":")[2]}'
            for key, amount in group.items()
            if key.startswith('resources:')
        )
        for group in profile.groups
    )


class ExplainProfile(tables.LinkAction):
    """Link to the hosts on which a profile fits."""

    name = 'explain'
    verbose_name = _('Explain')
    url = 'horizon:project:device_profiles:explain'
    policy_rules = (('accelerator', 'cyborg:device_profile:explain'),)


class ProfilesTable(RecordTable):
    """Device profiles."""

    name = tables.WrappingColumn(
        'name',
        verbose_name=_('Name'),
        link='horizon:project:device_profiles:detail',
    )
    description = tables.WrappingColumn('description', verbose_name=_('Description'))
    groups = tables.WrappingColumn(describe_groups, verbose_name=_('Accelerators'))
    is_public = tables.Column(
        'is_public', verbose_name=_('Public'), filters=(yesno, capfirst)
    )
    is_enabled = tables.Column(
        'enabled', verbose_name=_('Enabled'), filters=(yesno, capfirst)
    )

    class Meta:
        """Options of the table."""

        name = 'device_profiles'
        verbose_name = _('Device Profiles')
        row_actions: tuple[type[Any], ...] = (ExplainProfile,)
