# SPDX-License-Identifier: Apache-2.0
"""Commands on the service itself: its daemons, and what waits for an operator."""

import argparse
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ApiCommand, ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import AcceleratorApi, quote_path

_COLUMNS: Final = {
    'uuid': 'UUID',
    'binary': 'Binary',
    'hostname': 'Host',
    'state': 'State',
    'version': 'Version',
    'heartbeat_at': 'Heartbeat At',
}

_ATTENTION_COLUMNS: Final = {
    'severity': 'Severity',
    'kind': 'Kind',
    'since': 'Since',
    'hostname': 'Host',
    'subject': 'Subject',
    'reason': 'Reason',
    'command': 'Command',
}


class ListAttention(ListCommand):
    """List everything that waits for an operator, and the command that helps."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--kind', metavar='<kind>', help='Only this kind')
        parser.add_argument('--host', metavar='<host>', help='Only this host')

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {'kind': parsed_args.kind, 'hostname': parsed_args.host}
        items = self.api.call('GET', '/attention', query=query)['attention']
        rows = [
            {**item, 'subject': '{kind} {id}'.format_map(item['subject'])}
            for item in items
        ]
        return build_rows(_ATTENTION_COLUMNS, rows)


def _list_services(api: AcceleratorApi, **query: str | None) -> list[dict[str, Any]]:
    return list(api.list_all('/services', 'services', query))


class ListServices(ListCommand):
    """List conductors. The hosts have the agents."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--host', metavar='<host>', help='Only this host')
        parser.add_argument('--state', choices=['up', 'down'], help='Only this state')

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        services = _list_services(
            self.api,
            hostname=parsed_args.host,
            state=parsed_args.state,
        )
        return build_rows(_COLUMNS, services)


class ShowService(ShowCommand):
    """Show a daemon."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'service', metavar='<service>', help='Uuid of the daemon, or its host'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        matches = [
            service
            for service in _list_services(self.api)
            if parsed_args.service in (service['uuid'], service['hostname'])
        ]
        if not matches:
            text = f'No service has the uuid or host {parsed_args.service}.'
            raise exceptions.NotFound(404, text)
        return build_fields(matches[0])


class DeleteServices(ApiCommand):
    """Delete daemons that are down."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'services', metavar='<uuid>', nargs='+', help='Uuid of a daemon'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete the daemons in their order; stop at the first error."""
        for uuid in parsed_args.services:
            path = f'/services/{quote_path(uuid)}'
            self.api.call('DELETE', path)
