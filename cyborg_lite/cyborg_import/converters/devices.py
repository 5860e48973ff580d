# SPDX-License-Identifier: Apache-2.0
"""Devices of Cyborg as devices of this service.

The identity of each device is built so that the first report of the agent of its host
matches the imported row, which then keeps its uuid.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from cyborg_lite.cyborg_import.notes import (
    Notes,
    format_address,
    normalize_address,
    parse_object,
)
from cyborg_lite.cyborg_import.plan import NewDevice, StoredRows, Table
from cyborg_lite.cyborg_import.source_rows import SourceDatabase, SourceDevice
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.facts import NO_DEPLOYABLES
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.model.inventory.identities import slot_identity

_VENDOR: Final = re.compile(r'(?:0x)?([0-9a-f]{4})', re.IGNORECASE)
_PRODUCT_TRAIT: Final = re.compile(
    r'CUSTOM_(?:\w+_PRODUCT_ID|NVIDIA)_([0-9A-F]{4})(?:_\w+)?'
)
_FAKE_DRIVER: Final = 'fake'
# Vendor, model and slot of the device of the fake driver, which no host has.
_FAKE_IDENTITY: Final = 'fa4e:0c:00.0 0xABCD:FakeDevice'
_STATE_REASONS: Final[Mapping[str, str]] = {
    'error': 'Cyborg had set the device to the state error.',
    'pending_cleaning': 'Cyborg had not cleaned the device.',
    'cleaning': 'Cyborg had not finished cleaning the device.',
}


def convert_devices(
    source: SourceDatabase, stored: StoredRows, notes: Notes
) -> dict[int, NewDevice]:
    """Return the devices that can be imported, by id in the source."""
    reader = _DeviceReader(source, notes)
    devices: dict[int, NewDevice] = {}
    for row in source.devices:
        device = reader.read(row)
        if device is None:
            continue
        key = row.hostname, device.facts.hardware_id
        if not stored.has(Table.DEVICES, row.uuid) and key in stored.hardware_ids:
            notes.refuse(
                Table.DEVICES,
                row.uuid,
                f'The agent of host {row.hostname} has reported this device already. '
                'Stop the agent, run openstack accelerator host forget '
                f'{row.hostname}, and import again.',
            )
            continue
        devices[row.id] = device
    return devices


class _DeviceReader:
    """Reads devices with the facts that other tables have about them."""

    def __init__(self, source: SourceDatabase, notes: Notes) -> None:
        self._notes = notes
        self._drivers: dict[int, str] = {}
        self._products: dict[int, str] = {}
        self._addresses: dict[int, str] = {}
        self._read_addresses(source)
        self._read_deployables(source)

    def _read_addresses(self, source: SourceDatabase) -> None:
        """Read the address of each device, or else that of its first handle."""
        deployables = {row.id: row.device_id for row in source.deployables}
        texts = [(row.device_id, row.cpid_info) for row in source.control_paths]
        texts += [
            (deployables[row.deployable_id], row.attach_info)
            for row in source.handles
            if row.deployable_id in deployables
        ]
        for device_id, text in texts:
            fields = normalize_address(parse_object(text))
            if fields is not None:
                self._addresses.setdefault(device_id, format_address(fields))

    def _read_deployables(self, source: SourceDatabase) -> None:
        deployables = {row.id: row.device_id for row in source.deployables}
        for row in source.deployables:
            self._drivers.setdefault(row.device_id, row.driver_name or '')
        for attribute in source.attributes:
            match = _PRODUCT_TRAIT.fullmatch(attribute.value)
            device_id = deployables.get(attribute.deployable_id)
            if match is not None and device_id is not None:
                self._products.setdefault(device_id, match[1].lower())

    def read(self, row: SourceDevice) -> NewDevice | None:
        """Return the device, or None after a note that explains the refusal."""
        address = self._addresses.get(row.id)
        if address is None:
            self._notes.refuse(
                Table.DEVICES, row.uuid, 'It has no PCI address in controlpath_ids.'
            )
            return None
        state = row.device_state or ''
        reason = _STATE_REASONS.get(state, '')
        if reason:
            self._notes.change(
                Table.DEVICES,
                row.uuid,
                f'{reason} It is imported with the status maintaining.',
            )
        is_enabled = not reason and row.status in (None, DeviceStatus.ENABLED)
        status = DeviceStatus.ENABLED if is_enabled else DeviceStatus.MAINTAINING
        return NewDevice(
            uuid=row.uuid,
            hostname=row.hostname,
            facts=self._read_facts(row, address),
            status=status,
            status_reason=reason or ('' if is_enabled else 'Set in Cyborg.'),
            created_at=self._notes.date(row.created_at),
        )

    def _read_facts(self, row: SourceDevice, address: str) -> Device:
        driver = self._drivers.get(row.id, '')
        board = parse_object(row.std_board_info)
        product = board.get('product_id') or self._products.get(row.id)
        if product:
            board['product_id'] = product.lower().removeprefix('0x')
        vendor = _VENDOR.fullmatch(row.vendor)
        is_fake = driver == _FAKE_DRIVER
        facts = Device(
            type=row.type,
            vendor=vendor[1].lower() if vendor and not is_fake else row.vendor,
            model=row.model,
            driver=driver[:64],
            control_address=address,
            hardware_id='',
            root=NO_DEPLOYABLES,
            std_board_info=board,
            vendor_board_info=row.vendor_board_info,
        )
        identity = _FAKE_IDENTITY if is_fake else slot_identity(facts)
        return replace(facts, hardware_id=identity)
