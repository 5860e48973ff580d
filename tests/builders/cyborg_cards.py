# SPDX-License-Identifier: Apache-2.0
"""Cards in a database of OpenStack Cyborg, as its drivers store them.

The cards are those of the fixture hosts ``t4-mdev``, ``qat-x710`` and
``fpga-xilinx-u250``. Cyborg has a deployable for each virtual function of a QAT card,
and two attach handles for a Xilinx card: its management and its user function.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import NAMESPACE_DNS, uuid3, uuid5

from sqlalchemy import Connection, create_engine, text

HOST: Final = 'vm-b'  # of the sample
PROJECT: Final = 'cb51c65620104157a377d273ca4aff98'
_FIRST_ID: Final = 100  # above those of the sample
_TIME: Final = '2026-11-22 03:00:05'


@dataclass(frozen=True)
class CyborgPart:
    """A deployable with its attach handles."""

    address: str
    handles: tuple[str, ...]  # addresses; of vGPUs, types with numbers
    bound: int  # the first handles are bound to one server
    total: int = 0  # 0: the number of handles

    @property
    def provider(self) -> str:
        """Return the uuid that Cyborg derives from the name of the provider."""
        return str(uuid3(NAMESPACE_DNS, f'{HOST}_{self.address}'))

    @property
    def server(self) -> str:
        """Return the uuid of the server."""
        return build_uuid('server', self.address)

    @property
    def amount(self) -> int:
        """Return the inventory of the provider."""
        return self.total or len(self.handles)


@dataclass(frozen=True)
class CyborgCard:
    """A device, and the profile of its ARQs."""

    fixture: str
    type: str
    vendor: str
    product: str
    address: str
    resource_class: str
    trait: str
    profile: int  # id of a profile of the sample
    parts: tuple[CyborgPart, ...]
    attach_type: str = 'PCI'


VGPU: Final = CyborgCard(
    't4-mdev', 'GPU', '10de', '1eb8', '0000:af:00.0', 'VGPU',
    'CUSTOM_NVIDIA_1EB8_T4_2Q', 5,
    (CyborgPart('0000:af:00.0', tuple(f'nvidia-231_{n}' for n in range(8)), 2),),
    'MDEV',
)  # fmt: skip
QAT: Final = CyborgCard(
    'qat-x710', 'QAT', '0x8086', '4940', '0000:6b:00.0', 'CUSTOM_QAT',
    '', 8,
    (
        CyborgPart('0000:6b:00.1', ('0000:6b:00.1',), 1),
        CyborgPart('0000:6b:00.2', ('0000:6b:00.2',), 1),
    ),
)  # fmt: skip
XILINX: Final = CyborgCard(
    'fpga-xilinx-u250', 'FPGA', '10ee', '5004', '0000:d8:00.0', 'FPGA',
    'CUSTOM_FPGA_PRODUCT_ID_5004', 9,
    (CyborgPart('0000:d8:00.0', ('0000:d8:00.0', '0000:d8:00.1'), 2, total=1),),
)  # fmt: skip
CARDS: Final = (VGPU, QAT, XILINX)


def build_uuid(*names: object) -> str:
    """Return a uuid that is equal in all tests."""
    return str(uuid5(NAMESPACE_DNS, '/'.join(map(str, names))))


def list_parts() -> Iterator[tuple[CyborgCard, CyborgPart]]:
    """Yield all deployables with their cards."""
    for card in CARDS:
        for part in card.parts:
            yield card, part


def list_bound() -> dict[str, tuple[str, str, str]]:
    """Return handle, provider and server of each bound ARQ."""
    return {
        build_uuid('arq', handle): (
            build_uuid('handle', part.address, handle), part.provider, part.server
        )
        for _card, part in list_parts()
        for handle in part.handles[: part.bound]
    }  # fmt: skip


def add(url: str) -> None:
    """Add all cards to a database of the sample."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for number, card in enumerate(CARDS):
            _CardWriter(connection, card, _FIRST_ID * (number + 1)).write()
    engine.dispose()


class _CardWriter:
    """Writes the rows of a card. Any: values of columns."""

    def __init__(self, connection: Connection, card: CyborgCard, first_id: int) -> None:
        self._connection = connection
        self._card = card
        self._id = first_id  # of the card; the rows of other tables count from it
        self._next = first_id

    def write(self) -> None:
        card = self._card
        self._insert(
            'devices',
            {
                'id': self._id,
                'uuid': build_uuid('device', card.address),
                'type': card.type,
                'vendor': card.vendor,
                'model': 'miss model info',
                'std_board_info': json.dumps({'product_id': card.product}),
                'hostname': HOST,
                'status': 'enabled',
                'device_state': 'allocated',
            },
        )
        self._insert(
            'controlpath_ids',
            {
                'id': self._id,
                'uuid': build_uuid('path', card.address),
                'device_id': self._id,
                'cpid_type': 'PCI',
                'cpid_info': json.dumps(_split(card.address)),
            },
        )
        for part in card.parts:
            self._write_part(part)

    def _write_part(self, part: CyborgPart) -> None:
        deployable = self._take_id()
        self._insert(
            'deployables',
            {
                'id': deployable,
                'uuid': build_uuid('deployable', part.address),
                'name': f'{HOST}_{part.address}',
                'num_accelerators': part.amount,
                'device_id': self._id,
                'rp_uuid': part.provider,
                'driver_name': self._card.vendor,
            },
        )
        attributes = {'rc': self._card.resource_class, 'traits0': self._card.trait}
        for key, value in attributes.items():
            if value:
                self._write_attribute(deployable, key, value)
        for index, handle in enumerate(part.handles):
            self._write_handle(part, deployable, handle, is_bound=index < part.bound)

    def _write_attribute(self, deployable: int, key: str, value: str) -> None:
        number = self._take_id()
        uuid = build_uuid('attribute', number)
        values = {'id': number, 'uuid': uuid, 'deployable_id': deployable}
        # The column names are words of SQL.
        statement = (
            'INSERT INTO attributes VALUES (:time, NULL, :id, :uuid, :deployable_id, '
            ':name, :value)'
        )
        row = {**values, 'time': _TIME, 'name': key, 'value': value}
        self._connection.execute(text(statement), row)

    def _write_handle(
        self, part: CyborgPart, deployable: int, handle: str, *, is_bound: bool
    ) -> None:
        number = self._take_id()
        info = _split(part.address if self._card.attach_type == 'MDEV' else handle)
        if self._card.attach_type == 'MDEV':
            info |= {'asked_type': handle.partition('_')[0], 'vgpu_mark': handle}
        self._insert(
            'attach_handles',
            {
                'id': number,
                'uuid': build_uuid('handle', part.address, handle),
                'deployable_id': deployable,
                'cpid_id': self._id,
                'in_use': int(is_bound),
                'attach_type': self._card.attach_type,
                'attach_info': json.dumps(info),
            },
        )
        if is_bound:
            self._insert(
                'extended_accelerator_requests',
                {
                    'id': number,
                    'uuid': build_uuid('arq', handle),
                    'project_id': PROJECT,
                    'state': 'Bound',
                    'device_profile_id': self._card.profile,
                    'hostname': HOST,
                    'device_rp_uuid': part.provider,
                    'attach_handle_id': number,
                    'substate': 'Initial',
                    'deployable_id': deployable,
                    'device_profile_group_id': 0,
                    'instance_uuid': part.server,
                },
            )

    def _take_id(self) -> int:
        self._next += 1
        return self._next

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        values = {**row, 'created_at': _TIME}
        names = ', '.join(values)
        marks = ', '.join(f':{name}' for name in values)
        statement = f'INSERT INTO {table} ({names}) VALUES ({marks})'
        self._connection.execute(text(statement), values)


def _split(address: str) -> dict[str, str]:
    """Return the parts of a PCI address as Cyborg stores them."""
    domain, bus, slot = address.split(':')
    device, function = slot.split('.')
    return {'domain': domain, 'bus': bus, 'device': device, 'function': function}
