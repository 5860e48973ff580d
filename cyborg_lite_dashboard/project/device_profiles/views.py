# SPDX-License-Identifier: Apache-2.0
"""Pages of device profiles: the list, one profile, and the hosts on which it fits."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.project.device_profiles.tables import ProfilesTable
from cyborg_lite_dashboard.records import RecordsView, RecordView, format_time

_VERDICTS: Final = {
    'fits': (_('Fits'), 'success'),
    'not-now': (_('Not now'), 'warning'),
    'never': (_('Never'), 'danger'),
}


def build_profile_path(uuid: object) -> str:
    """Return the path of a profile in the API."""
    return f'/device_profiles/{api.quote_path(str(uuid))}'


class IndexView(RecordsView):
    """List of device profiles."""

    table_class = ProfilesTable
    page_title = _('Device Profiles')
    path = '/device_profiles'
    key = 'device_profiles'
    error_message = _('Unable to list the device profiles.')


class DetailView(RecordView):
    """Page of a device profile with its groups."""

    template_name = 'cyborg_lite_dashboard/device_profile.html'
    error_message = _('Unable to show the device profile.')

    def load(self, client: api.DashboardApi, **names: str) -> dict[str, Any]:
        """Read the profile."""
        path = build_profile_path(names['uuid'])
        profile = client.call('GET', path)['device_profile']
        return {
            'page_title': profile['name'],
            'profile': profile,
            'created_at': format_time(profile['created_at']),
            'updated_at': format_time(profile['updated_at']),
            'groups': [sorted(group.items()) for group in profile['groups']],
        }


class ExplainView(RecordView):
    """Hosts on which a profile fits, and the reasons against the other hosts."""

    template_name = 'cyborg_lite_dashboard/explain.html'
    error_message = _('Unable to explain the device profile.')

    def load(self, client: api.DashboardApi, **names: str) -> dict[str, Any]:
        """Ask the service. The argument ``hostname`` of the page selects one host."""
        hostname = self.request.GET.get('hostname', '').strip()
        answer = client.call(
            'POST',
            f'{build_profile_path(names["uuid"])}/explain',
            query={'hostname': hostname},
        )
        text, style = _VERDICTS.get(answer['verdict'], (answer['verdict'], 'default'))
        return {
            'page_title': _('Explain %s') % answer['device_profile_name'],
            'answer': answer,
            'hostname': hostname,
            'verdict': text,
            'style': style,
            'hosts': [
                {**host, 'lines': list(list_reasons(host))} for host in answer['hosts']
            ],
        }


def list_reasons(host: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons against a host, those of a group with its number."""
    for reason in host['reasons']:
        yield reason['text']
    for group in host['groups']:
        for reason in group['reasons']:
            yield _('Group %(number)s: %(reason)s') % {
                'number': group['group'],
                'reason': reason['text'],
            }
