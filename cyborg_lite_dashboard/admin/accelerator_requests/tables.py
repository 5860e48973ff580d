# SPDX-License-Identifier: Apache-2.0
"""Table of the accelerator requests of all projects."""

from django.utils.translation import gettext_lazy as _
from horizon import tables

from cyborg_lite_dashboard.project.accelerator_requests.tables import RequestsTable


class AdminRequestsTable(RequestsTable):
    """Accelerator requests with host and project."""

    uuid = tables.Column(
        'uuid',
        verbose_name=_('ID'),
        link='horizon:admin:accelerator_requests:detail',
    )
    hostname = tables.Column('hostname', verbose_name=_('Host'))
    project_id = tables.Column('project_id', verbose_name=_('Project'))

    class Meta(RequestsTable.Meta):
        """Options of the table."""

        columns = (
            'uuid',
            'project_id',
            'hostname',
            'profile',
            'instance',
            'state',
            'created_at',
        )
