# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator host ...``: hosts and their devices."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ApiCommand, ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import build_patch, quote_path

_COLUMNS: Final = {
    'numa_node': 'NUMA Node',
    'address': 'Address',
    'model': 'Model',
    'health': 'Health',
    'resource_class': 'Resource Class',
    'unit': 'Unit',
    'availability': 'Availability',
    'instance_uuid': 'Instance',
    'reason': 'Reason',
}
_BRIDGES: Final = {'pci_bridges': 'PCIe Bridges'}
_HOST_COLUMNS: Final = {
    'name': 'Name',
    'status': 'Status',
    'agent_state': 'Agent',
    'version': 'Version',
    'heartbeat_at': 'Heartbeat At',
    'devices_count': 'Devices',
    'maintaining_count': 'In Maintenance',
    'arqs_count': 'ARQs',
}


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('host', metavar='<host>', help='Name of the host')


def _build_path(host: str) -> str:
    return f'/hosts/{quote_path(host)}'


class ListHosts(ListCommand):
    """List hosts with their agents."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--agent-state', choices=['up', 'down'], help='Only hosts in this state'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {'agent_state': parsed_args.agent_state}
        return build_rows(_HOST_COLUMNS, self.api.list_all('/hosts', 'hosts', query))


class ShowHost(ShowCommand):
    """Show a host with its agent."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_host(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        return build_fields(self.api.read(_build_path(parsed_args.host)))

    def _set_paths(self, host: str, values: Mapping[str, str]) -> Table:
        path, body = _build_path(host), build_patch(values)
        return build_fields(self.api.call('PATCH', path, body=body))


class DisableHost(ShowHost):
    """Put all devices of a host into maintenance: no new instance gets them."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super()._add_arguments(parser)
        parser.add_argument('--reason', metavar='<text>', default='', help='Why')

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        values = {'status': 'maintaining', 'reason': parsed_args.reason}
        return self._set_paths(parsed_args.host, values)


class EnableHost(ShowHost):
    """End the maintenance of all devices of a host."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        return self._set_paths(parsed_args.host, {'status': 'enabled'})


class ForgetHost(ApiCommand):
    """Delete a host that is gone: its devices, its agent and its providers."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_host(parser)
        parser.add_argument(
            '--drain', action='store_true', help='First disable the devices'
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        query = {'drain': 'true'} if parsed_args.drain else None
        self.api.call('DELETE', _build_path(parsed_args.host), query=query)
        self.wait(parsed_args)


class ShowTopology(ListCommand):
    """List the units of a host by NUMA node and device, and who uses them."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_host(parser)
        parser.add_argument(
            '--bridges',
            action='store_true',
            help='Show the PCIe bridges above each device, the root port first',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List one row per unit, and one per device without units."""
        path = f'{_build_path(parsed_args.host)}/topology'
        answer = self.api.call('GET', path)
        rows = [
            row
            for node in answer['numa_nodes']
            for device in node['devices']
            for row in _list_rows(node, device)
        ]
        return build_rows(
            {**_COLUMNS, **(_BRIDGES if parsed_args.bridges else {})}, rows
        )


def _list_rows(
    node: Mapping[str, Any], device: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    base = {
        'numa_node': node['number'],
        'address': device['address'],
        'model': device['model'],
        'health': device['health'],
        'reason': device['health_reason'] or device['status_reason'] or None,
        'pci_bridges': ' '.join(device['pci_bridges']) or None,
    }
    units = [(item, unit) for item in device['deployables'] for unit in item['units']]
    if not units:
        yield base
    for item, unit in units:
        user = unit.get('user') or {}
        yield {
            **base,
            'resource_class': item['resource_class'],
            'unit': unit['name'],
            'availability': unit['availability'],
            'instance_uuid': user.get('instance_uuid'),
            'reason': unit['reason'] or base['reason'],
        }
