# SPDX-License-Identifier: Apache-2.0
"""Commands on ARQs, and on what the project may request, uses and is limited to.

``openstack accelerator arq ...`` of python-cyborgclient creates, lists, shows and
deletes ARQs. Its ``arq bind`` and ``arq unbind`` send no service token, so they are
refused.
"""

import argparse
import os
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import quote_path

_EVENT_COLUMNS: Final = {
    'at': 'At',
    'arq_uuid': 'ARQ',
    'step': 'Step',
    'actor': 'Actor',
    'duration': 'Duration [s]',
    'reason': 'Reason',
}
_LIMIT_COLUMNS: Final = {'resource': 'Resource', 'limit': 'Limit', 'used': 'Used'}
_COLUMNS: Final = {
    'uuid': 'UUID',
    'state': 'State',
    'device_profile_name': 'Device Profile',
    'instance_uuid': 'Instance',
    'hostname': 'Host',
}
_LONG_COLUMNS: Final = {
    'project_id': 'Project',
    'attach_handle_type': 'Type',
    'state_reason': 'Reason',
    'created_at': 'Created At',
}
# Argument of the API, and help, by option.
_FILTERS: Final = {
    '--state': ('state', 'Only this state; several are separated by commas'),
    '--host': ('hostname', 'Only this host'),
    '--instance': ('instance', 'Only this instance'),
    '--project': ('project_id', 'Only this project, by id'),
    '--profile': ('device_profile_name', 'Only this device profile'),
}
_USAGE_COLUMNS: Final = {
    'project': 'Project',
    'resource_class': 'Resource Class',
    'device_profile_name': 'Device Profile',
    'unit_hours': 'Unit Hours',
}
_TYPE_COLUMNS: Final = {
    'description': 'Description',
    'device_profiles': 'Device Profiles',
    'resource_class': 'Resource Class',
    'is_available': 'Available',
    'free_units': 'Free',
}
_PATH: Final = '/accelerator_requests'
_TOKEN_VARIABLE: Final = 'OS_SERVICE_TOKEN'


class _ArqCommand(ShowCommand):
    """Base of the commands on one ARQ."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('request', metavar='<arq>', help='Uuid of the ARQ')

    def _read(self, uuid: str) -> dict[str, Any]:
        return self.api.read(f'{_PATH}/{quote_path(uuid)}')

    def _send(self, parsed_args: argparse.Namespace, patch: list[Any]) -> None:
        """Send a patch with the service token.

        :raises CommandError: the service refuses the patch, or there is no token
        """
        if not parsed_args.service_token:
            raise exceptions.CommandError(
                'Binds and unbinds need a service token: set --service-token or '
                f'{_TOKEN_VARIABLE}.'
            )
        api = self.api.with_service_token(parsed_args.service_token)
        api.call('PATCH', _PATH, body={parsed_args.request: patch})
        self.api.operation = api.operation


def _add_service_token(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--service-token',
        metavar='<token>',
        default=os.environ.get(_TOKEN_VARIABLE, ''),
        help='Token of a user with the role service, which is sent beside your own '
        f'(Env: {_TOKEN_VARIABLE})',
    )


class ShowRequest(_ArqCommand):
    """Show an ARQ with its device and the times of its states."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        return build_fields(self._read(parsed_args.request))


class ListEvents(ListCommand):
    """List the history of an ARQ or of an instance, the latest step first.

    The history remains for a time after Nova has deleted the ARQ.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument(
            'request', metavar='<arq>', nargs='?', help='Uuid of the ARQ'
        )
        subject.add_argument(
            '--instance',
            metavar='<uuid>',
            help='All ARQs that the instance has or had',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        path, query = '/instance_events', {'instance': parsed_args.instance}
        if parsed_args.request is not None:
            path, query = f'{_PATH}/{quote_path(parsed_args.request)}/events', {}
        events = self.api.list_all(path, 'events', query)
        return build_rows(_EVENT_COLUMNS, events)


class ListRequests(ListCommand):
    """List ARQs with their instance, device and state."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        for option, (name, text) in _FILTERS.items():
            parser.add_argument(option, metavar='<value>', dest=name, help=text)
        parser.add_argument(
            '--long', action='store_true', help='Show more columns, such as the project'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {name: getattr(parsed_args, name) for name, _ in _FILTERS.values()}
        columns = {**_COLUMNS, **(_LONG_COLUMNS if parsed_args.long else {})}
        return build_rows(columns, self.api.list_all(_PATH, 'arqs', query))


class ListUsages(ListCommand):
    """Sum the use of units by project, resource class and device profile."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--start', metavar='<time>', help='In ISO 8601 (default: 30 days before)'
        )
        parser.add_argument('--end', metavar='<time>', help='Default: now')
        parser.add_argument(
            '--project', metavar='<project>', help='Only this project, by id'
        )
        parser.add_argument(
            '--names',
            action='store_true',
            help='Show and accept names of projects, which Keystone lists to admins',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        # Any: the client manager gets its attributes from the plugins.
        manager: Any = self.app.client_manager
        projects = manager.identity.projects.list() if parsed_args.names else ()
        names = {project.id: project.name for project in projects}
        ids = {name: uuid for uuid, name in names.items()}
        query = {
            'start': parsed_args.start,
            'end': parsed_args.end,
            'project_id': ids.get(parsed_args.project, parsed_args.project),
        }
        rows = [
            {**item, 'project': names.get(item['project_id'], item['project_id'])}
            for item in self.api.list_all('/usages', 'usages', query)
        ]
        return build_rows(_USAGE_COLUMNS, rows)


class ListDeviceTypes(ListCommand):
    """List what can be requested, and the device profiles that request it."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        types = self.api.read('/device_types')['device_types']
        return build_rows(_TYPE_COLUMNS, types)


class ShowLimits(ListCommand):
    """Show the limits of the project, and what it uses; -1 means unlimited."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        return build_rows(_LIMIT_COLUMNS, self.api.read('/limits')['limits'])


class BindRequest(_ArqCommand):
    """Bind an ARQ to an instance, as Nova does."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super()._add_arguments(parser)
        parser.add_argument(
            '--host', metavar='<host>', required=True, help='Host of the device'
        )
        parser.add_argument(
            '--instance', metavar='<uuid>', required=True, help='Uuid of the instance'
        )
        parser.add_argument(
            '--provider',
            metavar='<uuid>',
            required=True,
            help='Uuid of the resource provider that Placement has allocated from',
        )
        parser.add_argument(
            '--project', metavar='<project-id>', help='Project of the instance'
        )
        _add_service_token(parser)
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        values = {
            'hostname': parsed_args.host,
            'device_rp_uuid': parsed_args.provider,
            'instance_uuid': parsed_args.instance,
            'project_id': parsed_args.project,
        }
        patch = [
            {'op': 'add', 'path': f'/{name}', 'value': value}
            for name, value in values.items()
            if value
        ]
        self._send(parsed_args, patch)
        self.wait(parsed_args)
        return build_fields(self._read(parsed_args.request))


class UnbindRequest(_ArqCommand):
    """Release the device of an ARQ. The ARQ can be bound again."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super()._add_arguments(parser)
        _add_service_token(parser)
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        names = ('hostname', 'instance_uuid', 'device_rp_uuid')
        patch = [{'op': 'remove', 'path': f'/{name}'} for name in names]
        self._send(parsed_args, patch)
        self.wait(parsed_args)
        return build_fields(self._read(parsed_args.request))
