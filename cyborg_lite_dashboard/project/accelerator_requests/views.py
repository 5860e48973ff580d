# SPDX-License-Identifier: Apache-2.0
"""Pages of accelerator requests: the list, and one request with its history."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from openstack_dashboard.api.base import APIDictWrapper

from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.project.accelerator_requests.tables import (
    EventsTable,
    RequestsTable,
    find_state_style,
)
from cyborg_lite_dashboard.records import RecordsView, RecordView, format_time


class IndexView(RecordsView):
    """List of the requests of the project."""

    table_class = RequestsTable
    page_title = _('Accelerator Requests')
    path = '/accelerator_requests'
    key = 'arqs'
    error_message = _('Unable to list the accelerator requests.')

    def build_query(self) -> Mapping[str, Any]:
        """Select the project, because an administrator reads all projects."""
        return {'project_id': self.request.user.project_id}


class DetailView(RecordView):
    """Page of a request with its history."""

    template_name = 'cyborg_lite_dashboard/accelerator_request.html'
    error_message = _('Unable to show the accelerator request.')

    def load(self, client: api.DashboardApi, **names: str) -> dict[str, Any]:
        """Read the request and its history."""
        path = f'/accelerator_requests/{api.quote_path(str(names["uuid"]))}'
        arq = client.call('GET', path)
        events = client.call('GET', f'{path}/events')['events']
        rows = [APIDictWrapper(event) for event in events]
        return {
            'page_title': arq['uuid'],
            'arq': arq,
            'style': find_state_style(arq['state']),
            'created_at': format_time(arq['created_at']),
            'handle': sorted((arq['attach_handle_info'] or {}).items()),
            'table': EventsTable(self.request, data=rows),
        }
