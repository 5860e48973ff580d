# SPDX-License-Identifier: Apache-2.0
"""Tables of devices and of their history."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from horizon import tables

from cyborg_lite_dashboard.records import RecordTable, format_time, join_reason

# Bootstrap's classes of colours.
_AVAILABILITY_STYLES: Final[Mapping[str, str]] = {
    'free': 'success',
    'used': 'info',
    'dirty': 'warning',
    'allocated': 'info',
    'reserved': 'warning',
    'host-down': 'danger',
    'broken': 'danger',
}


def describe_health(device: Any) -> str:
    """Return the health with its reason."""
    return join_reason(device, 'health', 'health_reason')


def describe_status(device: Any) -> str:
    """Return the status with its reason."""
    return join_reason(device, 'status', 'status_reason')


def _style_availability(availability: str) -> dict[str, str]:
    return {'class': _AVAILABILITY_STYLES.get(availability, '')}


class ChangeStatus(tables.LinkAction):
    """Link to the form that disables or enables a device."""

    name = 'status'
    verbose_name = _('Change Status')
    url = 'horizon:admin:accelerator_devices:status'
    classes = ('ajax-modal',)
    policy_rules = (('accelerator', 'cyborg:device:update'),)


class DevicesTable(RecordTable):
    """Devices of all hosts."""

    model = tables.WrappingColumn(
        'model',
        verbose_name=_('Model'),
        link='horizon:admin:accelerator_devices:detail',
        empty_value=_('Unknown model'),
    )
    type = tables.Column('type', verbose_name=_('Type'))
    vendor = tables.Column('vendor', verbose_name=_('Vendor'))
    hostname = tables.Column('hostname', verbose_name=_('Host'))
    health = tables.WrappingColumn(describe_health, verbose_name=_('Health'))
    status = tables.WrappingColumn(describe_status, verbose_name=_('Status'))
    requests = tables.Column('arqs_count', verbose_name=_('Requests'))

    def get_object_display(self, datum: Any) -> str:
        """Return the name of a device in messages."""
        return f'{datum.model} ({datum.hostname})'

    class Meta:
        """Options of the table."""

        name = 'devices'
        verbose_name = _('Accelerator Devices')
        row_actions = (ChangeStatus,)


class EventsTable(tables.DataTable):
    """History of a device."""

    at = tables.Column('at', verbose_name=_('Time'), filters=(format_time,))
    kind = tables.Column('kind', verbose_name=_('Event'))
    unit = tables.Column('unit', verbose_name=_('Unit'))
    value = tables.Column('value', verbose_name=_('Value'))
    reason = tables.WrappingColumn('reason', verbose_name=_('Reason'))

    def get_object_id(self, datum: Any) -> str:
        """Return the key of a row."""
        return f'{datum.at}-{datum.kind}-{datum.unit}'

    class Meta:
        """Options of the table."""

        name = 'events'
        verbose_name = _('History')
        footer = False


class UnitsTable(tables.DataTable):
    """Units of a device, and the requests that use them."""

    name = tables.Column('name', verbose_name=_('Unit'))
    resource_class = tables.Column('resource_class', verbose_name=_('Resource Class'))
    availability = tables.Column(
        'availability',
        verbose_name=_('Availability'),
        cell_attributes_getter=_style_availability,
    )
    profile = tables.WrappingColumn('profile', verbose_name=_('Device Profile'))
    instance = tables.Column('instance', verbose_name=_('Instance'))
    reason = tables.WrappingColumn('reason', verbose_name=_('Reason'))

    def get_object_id(self, datum: Any) -> str:
        """Return the key of a row."""
        name: str = datum.name
        return name

    class Meta:
        """Options of the table."""

        name = 'units'
        verbose_name = _('Units')
        footer = False
