# SPDX-License-Identifier: Apache-2.0
"""Topology of a host as an HTML page that needs no other file."""

from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from cyborg_lite.model.host_topology import HostTopology, TopologyDevice, TopologyUnit
from cyborg_lite.rendering.outline import (
    build_outline,
    describe_counts,
    describe_health,
)
from cyborg_lite.rendering.svg import build_svg

_STYLE: Final = """
body { font: 14px/1.5 system-ui, sans-serif; color: #243b53; margin: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
.scroll { overflow-x: auto; border: 1px solid #d9e2ec; border-radius: 6px; }
.scroll svg { display: block; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid #e4ebf1;
  vertical-align: top; }
th { background: #f0f4f8; white-space: nowrap; }
td { overflow-wrap: anywhere; min-width: 6rem; }
.free { color: #2e7d32; } .used { color: #1769aa; }
.reserved { color: #96590a; } .broken { color: #b3261e; font-weight: bold; }
@media (max-width: 40rem) {
  body { margin: .6rem; display: flex; flex-direction: column; }
  .picture { order: 1; margin-top: 1.6rem; }
  thead { display: none; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid #d9e2ec; }
  td { display: flex; gap: .7rem; border: 0; padding: .1rem .7rem; }
  td::before { content: attr(data-label); flex: 0 0 8rem; color: #52667a; }
}
""".strip()

_DEVICE_COLUMNS: Final = (
    'NUMA node',
    'Address',
    'PCIe bridges',
    'Type',
    'Model',
    'Health',
    'Status',
    'Units',
)
_UNIT_COLUMNS: Final = (
    'Device',
    'Unit',
    'Resource class',
    'Availability',
    'Profile',
    'Instance',
    'Project',
    'Reason',
)


def format_page(topology: HostTopology) -> str:
    """Return the page: the picture, and tables of the devices and units."""
    outline = build_outline(topology)
    page = ElementTree.Element('html', lang='en')
    head = _add(page, 'head')
    _add(head, 'meta', charset='utf-8')
    viewport = {'name': 'viewport', 'content': 'width=device-width, initial-scale=1'}
    ElementTree.SubElement(head, 'meta', viewport)
    _add(head, 'title', f'Topology of {topology.hostname}')
    _add(head, 'style', _STYLE)
    body = _add(page, 'body')
    _add(body, 'h1', topology.hostname)
    _add(body, 'p', ', '.join(outline.lines))
    picture = _add(body, 'div', **{'class': 'scroll picture'})
    picture.append(build_svg(topology))
    _add_devices(body, topology)
    _add_units(body, topology)
    text = ElementTree.tostring(page, encoding='unicode', method='html')
    return f'<!DOCTYPE html>\n{text}\n'


def _add_devices(body: ElementTree.Element, topology: HostTopology) -> None:
    _add(body, 'h2', 'Devices')
    table = _add_table(body, _DEVICE_COLUMNS)
    for node in topology.numa_nodes:
        number = '-' if node.number is None else str(node.number)
        for device in node.devices:
            health = ', '.join(describe_health(device))
            reason = f': {device.status_reason}' if device.status_reason else ''
            status = f'{device.status}{reason}'
            counts = describe_counts(device.count_units())
            bridges = ' '.join(device.pci_bridges) or '-'
            cells = device.type, device.model, health, status, counts
            _add_row(table, _DEVICE_COLUMNS, (number, device.address, bridges, *cells))


def _add_units(body: ElementTree.Element, topology: HostTopology) -> None:
    _add(body, 'h2', 'Units')
    table = _add_table(body, _UNIT_COLUMNS)
    for device in topology.devices:
        for item in device.deployables:
            for unit in item.units:
                _add_unit(table, device, unit, item.resource_class or '-')


def _add_unit(
    table: ElementTree.Element,
    device: TopologyDevice,
    unit: TopologyUnit,
    resource_class: str,
) -> None:
    user = unit.user
    row = _add_row(
        table,
        _UNIT_COLUMNS,
        (
            device.address,
            unit.name,
            resource_class,
            unit.availability,
            user.device_profile_name if user else '-',
            (user and user.instance_uuid) or '-',
            (user and user.project_id) or '-',
            unit.reason or '-',
        ),
    )
    row[_UNIT_COLUMNS.index('Availability')].set('class', unit.availability)


def _add_table(
    body: ElementTree.Element, columns: Sequence[str]
) -> ElementTree.Element:
    """Add a table with a header; return the element for its rows."""
    table = _add(_add(body, 'div', **{'class': 'scroll'}), 'table')
    header = _add(_add(table, 'thead'), 'tr')
    for column in columns:
        _add(header, 'th', column)
    return _add(table, 'tbody')


def _add_row(
    table: ElementTree.Element, columns: Sequence[str], cells: Sequence[str]
) -> ElementTree.Element:
    row = _add(table, 'tr')
    for column, cell in zip(columns, cells, strict=True):
        # A narrow screen shows the label beside the cell.
        _add(row, 'td', cell, **{'data-label': column})
    return row


def _add(
    parent: ElementTree.Element, tag: str, text: str = '', **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag, attributes)
    is_safe = tag == 'style'
    element.text = text if is_safe else _replace_controls(text)
    return element


def _replace_controls(text: str) -> str:
    return ''.join(char if char.isprintable() else '\ufffd' for char in text)
