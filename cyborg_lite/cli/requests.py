# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator request ...``: the history and the bind of ARQs.

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
