# SPDX-License-Identifier: Apache-2.0
"""Tables of accelerator requests and of their history."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from horizon import tables

from cyborg_lite_dashboard.records import RecordTable, format_time

# Bootstrap's classes of colours. In other states the work continues.
STATE_STYLES: Final[Mapping[str, str]] = {
    'Bound': 'success',
    'Initial': 'default',
    'Unbound': 'default',
    'BindFailed': 'danger',
    'UnbindFailed': 'danger',
    'Unknown': 'danger',
}


def find_state_style(state: str) -> str:
    """Return the class of the colour of a state."""
    return STATE_STYLES.get(state, 'warning')


def _style_state(state: str) -> dict[str, str]:
    return {'class': find_state_style(state)}


class RequestsTable(RecordTable):
    """Accelerator requests."""

    uuid = tables.Column(
        'uuid',
        verbose_name=_('ID'),
        link='horizon:project:accelerator_requests:detail',
    )
    profile = tables.WrappingColumn(
        'device_profile_name', verbose_name=_('Device Profile')
    )
    instance = tables.Column('instance_uuid', verbose_name=_('Instance'))
    state = tables.Column(
        'state', verbose_name=_('State'), cell_attributes_getter=_style_state
    )
    created_at = tables.Column(
        'created_at', verbose_name=_('Created'), filters=(format_time,)
    )

    class Meta:
        """Options of the table."""

        name = 'accelerator_requests'
        verbose_name = _('Accelerator Requests')


class EventsTable(tables.DataTable):
    """History of a request."""

    at = tables.Column('at', verbose_name=_('Time'), filters=(format_time,))
    step = tables.Column('step', verbose_name=_('Step'))
    actor = tables.Column('actor', verbose_name=_('Actor'))
    duration = tables.Column('duration', verbose_name=_('Seconds'))
    reason = tables.WrappingColumn('reason', verbose_name=_('Reason'))

    def get_object_id(self, datum: Any) -> str:
        """Return the key of a row."""
        return f'{datum.at}-{datum.step}'

    class Meta:
        """Options of the table."""

        name = 'events'
        verbose_name = _('History')
        footer = False
