# SPDX-License-Identifier: Apache-2.0
"""Import of vGPUs, QAT and Xilinx cards, and the first report of their agent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.clients.placement import Consumer
from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders import cyborg_cards, cyborg_sample
from tests.doubles.instances import FakeInstances
from tests.doubles.placement import FakePlacement
from tests.hosts.fixture_hosts import FixtureHost

_ARQS = (
    'SELECT a.uuid, h.uuid, a.device_rp_uuid, a.instance_uuid FROM arqs a '
    "JOIN attach_handles h ON h.arq_uuid = a.uuid WHERE a.state = 'Bound' "
    f"AND a.hostname = '{cyborg_cards.HOST}'"
)
_DEVICES = f"SELECT uuid FROM devices WHERE hostname = '{cyborg_cards.HOST}' " + (
    "AND driver != 'fake'"
)
_FREE = 'SELECT "key" FROM attach_handles WHERE arq_uuid IS NULL AND in_use = 0'
_USED = 'SELECT "key" FROM attach_handles WHERE arq_uuid IS NOT NULL'


@dataclass(frozen=True)
class Import:
    """The command with its source and its target."""

    source: str  # URL
    target: str  # URL
    record: Path
    options: Sequence[str]

    def run(self) -> int:
        return main.main([*self.options, '--from', self.source])

    def undo(self) -> int:
        return main.main([*self.options, '--undo', str(self.record)])

    def list_bound(self) -> dict[str, tuple[str, str, str]]:
        """Return handle, provider and server of each bound ARQ of the host."""
        rows = cyborg_sample.read(self.target, _ARQS)
        return {
            arq: (handle, provider, server) for arq, handle, provider, server in rows
        }

    def list_values(self, statement: str) -> set[Any]:
        """Return the first column of a SELECT. Any: its type."""
        return {row[0] for row in cyborg_sample.read(self.target, statement)}


@pytest.fixture
def command(
    write_config: Callable[..., list[str]],
    servers: FakeInstances,
    placement: FakePlacement,
    tmp_path: Path,
) -> Import:
    """Return the command in the cloud of the cards."""
    for card, part in cyborg_cards.list_parts():
        placement.create_provider(part.provider, part.address, None)
        servers.hosts[part.server] = cyborg_cards.HOST
        allocations = {part.provider: {card.resource_class: 1}}
        consumer = Consumer(part.server, 'project', 'user', 1, allocations)
        placement.consumers[part.server] = consumer
    source = f'sqlite:///{tmp_path}/cyborg.sqlite'
    cyborg_sample.load(source)
    cyborg_cards.add(source)
    record = tmp_path / 'record'
    options = [*write_config(), 'import', '--record', str(record)]
    target = f'sqlite:///{tmp_path}/cyborg_lite.sqlite'
    return Import(source, target, record, options)


def build_report(directory: Path) -> HostReport:
    """Return what the drivers of this service report of the same cards."""
    devices = []
    for card in cyborg_cards.CARDS:
        report = FixtureHost(card.fixture, cyborg_cards.HOST, directory).scan()
        devices += [
            device
            for device in report.devices
            if device.control_address == card.address
        ]
    return replace(report, devices=tuple(devices))


def test_import_cards_keep_handles_after_first_report(
    command: Import,
    database: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.run() == 0, capsys.readouterr().out
    bound = cyborg_cards.list_bound()
    assert command.list_bound() == bound

    database.write(reports.store_report, build_report(tmp_path))
    assert command.list_bound() == bound
    assert command.list_values(_DEVICES) == {
        cyborg_cards.build_uuid('device', card.address) for card in cyborg_cards.CARDS
    }
    # Cyborg has a deployable for each QAT function, this service has one for the card.
    free, used = command.list_values(_FREE), command.list_values(_USED)
    assert not free & used
    assert {'0000:6b:00.3', '0000:af:00.0/nvidia-231/2'} <= free
    assert {'0000:6b:00.2', '0000:d8:00.1', '0000:af:00.0/nvidia-231/1'} <= used


@pytest.mark.parametrize(
    ('state', 'advice', 'next_step'),
    [
        (
            'BindStarted',
            'Wait for the bind, or delete the server. Then undo this import, and '
            'import again.',
            "UPDATE {} SET state = 'Bound'",
        ),
        ('Deleting', 'Delete it in Cyborg, then import again.', 'DELETE FROM {}'),
    ],
)
def test_import_unfinished_arq_is_explained(
    command: Import,
    capsys: pytest.CaptureFixture[str],
    state: str,
    advice: str,
    next_step: str,
) -> None:
    bound = cyborg_cards.list_bound()
    arq, (handle, _provider, _server) = next(iter(bound.items()))
    _change_arq(command, arq, f"UPDATE {{}} SET state = '{state}'")
    assert command.run() == 1
    assert _read_advice(capsys, arq).endswith(advice)
    assert command.list_bound().keys() == bound.keys() - {arq}
    assert _is_closed(command, handle)

    # The operator follows the advice.
    _change_arq(command, arq, next_step)
    if state == 'BindStarted':
        assert command.undo() == 0
    else:
        del bound[arq]
    assert command.run() == 0
    assert command.list_bound() == bound


def _change_arq(command: Import, arq: str, statement: str) -> None:
    """Change an ARQ as Cyborg does.

    :param statement: without the table and the condition
    """
    change = statement.format('extended_accelerator_requests')
    cyborg_sample.run(command.source, f"{change} WHERE uuid = '{arq}'")


def _read_advice(capsys: pytest.CaptureFixture[str], arq: str) -> str:
    """Return the line of the report about an ARQ."""
    lines = capsys.readouterr().out.splitlines()
    refused = {row[0]: row[-1] for row in map(str.split, lines) if row}
    assert (refused['arqs'], refused['devices']) == ('1', '0')
    (line,) = [line for line in lines if arq in line]
    assert line.split()[:2] == ['refused', 'arqs']
    return line


def _is_closed(command: Import, handle: str) -> bool:
    """Check that no other server gets a handle."""
    statement = f"SELECT in_use FROM attach_handles WHERE uuid = '{handle}'"
    return command.list_values(statement) == {1}
