# SPDX-License-Identifier: Apache-2.0
"""Tables of objects of the API, and pages of one object."""

from collections.abc import Mapping
from typing import Any, Final

from django.urls import reverse
from django.utils import dateparse, formats, timezone
from django.utils.translation import gettext_lazy as _
from horizon import exceptions, tables
from horizon.utils.functions import get_page_size
from horizon.views import HorizonTemplateView
from openstack_dashboard.api.base import APIDictWrapper

from cyborg_lite_dashboard import api

_TIME_FORMAT: Final = 'Y-m-d H:i:s'


def format_time(text: str | None) -> str:
    """Return a time of the API in the time zone of the user."""
    moment = dateparse.parse_datetime(text) if text else None
    if moment is None:
        return '-'
    return str(formats.date_format(timezone.localtime(moment), _TIME_FORMAT))


def join_reason(record: Any, name: str, reason: str) -> str:
    """Return the value of a field, with the reason if there is one."""
    value, text = record.get(name) or '-', record.get(reason)
    return f'{value}: {text}' if text else value


class RecordTable(tables.DataTable):
    """Table of objects with a uuid."""

    def get_object_id(self, datum: Any) -> str:
        """Return the key of a row."""
        uuid: str = datum.uuid
        return uuid

    def get_object_display(self, datum: Any) -> str:
        """Return the name of a row in messages."""
        name: str = datum.get('name') or datum.uuid
        return name


class RecordsView(tables.PagedTableMixin, tables.DataTableView):
    """Page with a table of one collection, newest object first.

    ``path`` and ``key`` name the collection in the API.
    """

    template_name = 'horizon/common/_data_table_view.html'
    path: str
    key: str
    error_message = _('Unable to list the objects.')

    def build_query(self) -> Mapping[str, Any]:
        """Return the filters of the collection."""
        return {}

    def get_data(self) -> list[APIDictWrapper]:
        """Return the rows of one page, and remember whether more pages exist."""
        marker, direction = self._get_marker()
        is_back = direction == 'asc'
        query = {
            **self.build_query(),
            'limit': get_page_size(self.request),
            'marker': marker,
            'sort_key': 'created_at',
            'sort_dir': direction,
        }
        try:
            answer = api.connect(self.request).call('GET', self.path, query=query)
        except api.ApiError:
            exceptions.handle(self.request, self.error_message)
            return []
        has_next = any(
            link['rel'] == 'next' for link in answer.get(f'{self.key}_links', ())
        )
        self._has_more_data = is_back or has_next
        self._has_prev_data = has_next if is_back else marker is not None
        rows = [APIDictWrapper(record) for record in answer[self.key]]
        return rows[::-1] if is_back else rows


class RecordView(HorizonTemplateView):
    """Page of one object.

    A missing object, or an error of the service, leads back to the list with a message.
    """

    error_message = _('Unable to show the object.')

    def load(self, client: api.DashboardApi, **names: str) -> dict[str, Any]:
        """Return the context of the page.

        :param names: of the path
        """
        raise NotImplementedError

    def get_context_data(self, **names: Any) -> dict[str, Any]:
        """Return the context of the page, with the address of the list."""
        context: dict[str, Any] = super().get_context_data(**names)
        index = reverse(f'{self.request.resolver_match.namespace}:index')
        context['index_url'] = index
        try:
            context |= self.load(api.connect(self.request), **names)
        except api.ApiError:
            exceptions.handle(self.request, self.error_message, redirect=index)
        return context
