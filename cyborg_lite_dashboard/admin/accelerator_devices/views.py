# SPDX-License-Identifier: Apache-2.0
"""Pages of devices: the list, one device, the picture of its host, and its status."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from django.http import Http404, HttpResponse
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext_lazy as _
from django.views.generic import View
from horizon import exceptions, forms
from openstack_dashboard.api.base import APIDictWrapper

from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.admin.accelerator_devices.forms import StatusForm
from cyborg_lite_dashboard.admin.accelerator_devices.tables import (
    DevicesTable,
    EventsTable,
    UnitsTable,
)
from cyborg_lite_dashboard.exceptions import ObjectNotFound
from cyborg_lite_dashboard.records import RecordsView, RecordView, format_time
from cyborg_lite_dashboard.topology import draw_topology

_INDEX: Final = 'horizon:admin:accelerator_devices:index'
_STATUS: Final = 'horizon:admin:accelerator_devices:status'
_HEALTH_STYLES: Final = {'ok': 'success', 'degraded': 'warning', 'busy': 'warning'}
_STATUS_STYLES: Final = {'enabled': 'success'}

# A browser that shows the picture as a page of its own must run nothing in it.
_PICTURE_HEADERS: Final = {
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'private, no-cache',
}


def _build_path(uuid: object) -> str:
    return f'/devices/{api.quote_path(str(uuid))}'


# Any, here and below: values of JSON.
def read_topology(client: api.DashboardApi, hostname: str) -> Mapping[str, Any]:
    """Return the topology of a host as the API has it."""
    path = f'/hosts/{api.quote_path(hostname)}/topology'
    answer: Mapping[str, Any] = client.call('GET', path)
    return answer


def list_units(topology: Mapping[str, Any], uuid: str) -> Iterator[dict[str, Any]]:
    """Yield the units of a device, with the resource class and the user of each."""
    devices = chain.from_iterable(node['devices'] for node in topology['numa_nodes'])
    for device in devices:
        if device['uuid'] == uuid:
            for item in device['deployables']:
                for unit in item['units']:
                    user = unit.get('user') or {}
                    yield {
                        **unit,
                        'resource_class': item['resource_class'],
                        'profile': user.get('device_profile_name'),
                        'instance': user.get('instance_uuid'),
                    }


class IndexView(RecordsView):
    """List of devices."""

    table_class = DevicesTable
    page_title = _('Accelerator Devices')
    path = '/devices'
    key = 'devices'
    error_message = _('Unable to list the devices.')


class DetailView(RecordView):
    """Page of a device: its units, its history, and the picture of its host."""

    template_name = 'cyborg_lite_dashboard/device.html'
    error_message = _('Unable to show the device.')

    def load(self, client: api.DashboardApi, **names: str) -> dict[str, Any]:
        """Read the device, its units and its history."""
        path = _build_path(names['uuid'])
        device = client.call('GET', path)
        events = client.call('GET', f'{path}/events')['events']
        topology = read_topology(client, device['hostname'])
        units = list(list_units(topology, device['uuid']))
        return {
            'page_title': f'{device["model"]} ({device["hostname"]})',
            'device': device,
            'health_style': _HEALTH_STYLES.get(device['health'], 'danger'),
            'status_style': _STATUS_STYLES.get(device['status'], 'warning'),
            'health_since': format_time(device['health_since']),
            'created_at': format_time(device['created_at']),
            'units': UnitsTable(self.request, data=list(map(APIDictWrapper, units))),
            'events': EventsTable(self.request, data=list(map(APIDictWrapper, events))),
        }


class TopologyView(View):
    """Picture of the host of a device."""

    # Any: Django has no types.
    def get(self, request: Any, hostname: str) -> HttpResponse:
        """Draw the picture.

        :raises Http404: the host has no devices
        """
        try:
            answer = read_topology(api.connect(request), hostname)
        except ObjectNotFound as error:
            raise Http404 from error
        except api.ApiError as error:
            return HttpResponse(str(error), content_type='text/plain', status=502)
        return HttpResponse(
            draw_topology(answer),
            content_type='image/svg+xml',
            headers=_PICTURE_HEADERS,
        )


class StatusView(forms.ModalFormView):
    """Form that disables or enables a device."""

    template_name = 'cyborg_lite_dashboard/device_status.html'
    form_class = StatusForm
    form_id = 'device_status_form'
    page_title = _('Change Status')
    submit_label = _('Save')
    success_url = reverse_lazy(_INDEX)

    def get_initial(self) -> dict[str, Any]:
        """Return the present status of the device."""
        try:
            client = api.connect(self.request)
            device = client.call('GET', _build_path(self.kwargs['uuid']))
        except api.ApiError:
            exceptions.handle(
                self.request, _('Unable to show the device.'), redirect=reverse(_INDEX)
            )
        return {
            'uuid': device['uuid'],
            'status': device['status'],
            'reason': device['status_reason'],
        }

    def get_context_data(self, **values: Any) -> dict[str, Any]:
        """Return the context of the form."""
        context: dict[str, Any] = super().get_context_data(**values)
        context['submit_url'] = reverse(_STATUS, args=(self.kwargs['uuid'],))
        return context
