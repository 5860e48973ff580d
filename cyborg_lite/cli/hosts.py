# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator host ...``: the devices of a host."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cyborg_lite.cli.columns import build_rows
from cyborg_lite.cli.commands import ListCommand, Table
from cyborg_lite.cli.rest import quote_path

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


class ShowTopology(ListCommand):
    """List the units of a host by NUMA node and device, and who uses them."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        parser.add_argument(
            '--bridges',
            action='store_true',
            help='Show the PCIe bridges above each device, the root port first',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """List one row per unit, and one per device without units."""
        path = f'/hosts/{quote_path(parsed_args.host)}/topology'
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
