# SPDX-License-Identifier: Apache-2.0
"""Fixture hosts with real daemons and a real Placement, compared by PCI function."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.device_health import acknowledge
from cyborg_lite.drivers.kernel_log import FILE
from tests.chaos.faulty_cloud import FaultyCloud
from tests.doubles.rebootable_host import boot
from tests.doubles.spdk import NQN, FakeSpdk
from tests.hosts.fixture_agent import FIXTURES, FixtureAgent, ShownProvider
from tests.hosts.sysfs_tree import build_from
from tests.servers.stack import ADMIN, expect
from tests.servers.vgpu_fixtures import cloud

__all__ = ['cloud']

IDLE, CUT = '0000:3b:00.0', '0000:af:00.0'

Row = tuple[str, str, str, str, str, str]


@pytest.fixture
def host(
    cloud: FaultyCloud, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[FixtureAgent]:
    fixture: str = getattr(request, 'param', 't4-mdev')
    with FixtureAgent(cloud, tmp_path, fixture) as fixture_agent:
        yield fixture_agent


# --- inventory of each host ---


def test_fixture_hosts_every_function_has_a_result(
    cloud: FaultyCloud, tmp_path: Path
) -> None:
    """Run with ``-s`` to read the table."""
    table: list[Row] = []
    for fixture in FIXTURES:
        with FixtureAgent(cloud, tmp_path / fixture, fixture) as host:
            host.switch_on()
            check_expectations(host)
            bind_every_class(host)
            table += rows_of(host, tmp_path / f'{fixture}-tree')
    assert all(row[-1] for row in table)
    rows_offered = [row for row in table if row[4] != '-']
    assert len(rows_offered) < len(table)
    widths = [max(len(row[column]) for row in table) for column in range(5)]
    for row in table:
        cells = (f'{cell:<{size}}' for cell, size in zip(row, widths, strict=False))
        print('  '.join([*cells, row[-1]]))


def check_expectations(host: FixtureAgent) -> None:
    """Check that Placement has the expected units of each device.

    The suite ``conformance`` compares all fields with the results of the drivers.
    """
    providers = host.providers()
    for fields in host.fixture.expected_devices:
        totals = (
            total
            for name, part in providers.items()
            if name.startswith(fields['pci'])
            for total in part.inventory.values()
        )
        assert sum(totals) == fields['total'], fields


def bind_every_class(host: FixtureAgent) -> None:
    """Bind and release a unit of each resource class that Nova attaches as PCI."""
    chosen: dict[str, ShownProvider] = {}
    before = host.providers()
    for provider in before.values():
        for name in provider.inventory if provider.free else ():
            chosen.setdefault(name, provider)
    chosen.pop('VGPU', None)  # of several types; other tests bind them
    boot = host.cloud.boot
    instances = [boot(name, provider=item.uuid) for name, item in chosen.items()]
    for instance in instances:
        host.cloud.until(instance.is_resolved, f'{instance.resources} is bound')
        (arq,) = instance.list_arqs()
        assert (arq['state'], arq['attach_handle_type']) == ('Bound', 'PCI')
        is_port = 'CUSTOM_NIC' in instance.resources
        assert ('physical_network' in arq['attach_handle_info']) == is_port
        instance.delete()
    for instance in instances:
        host.cloud.until(instance.are_arqs_deleted, f'{instance.resources} is released')
    host.settle()
    assert host.providers() == before


def rows_of(host: FixtureAgent, tree: Path) -> Iterator[Row]:
    """Yield host, address, ids, class, Placement inventory and reason."""
    fixture = host.fixture.fixture
    functions = build_from(host.fixture.fields, tree)
    verdicts = {entry['address']: entry for entry in host.verdicts()}
    providers = host.providers()
    assert verdicts.keys() <= functions.keys()
    for address in sorted(functions):
        parts = {n: p for n, p in providers.items() if n.startswith(address)}
        inventories = [
            f'{name} {total}'
            for part in parts.values()
            for name, total in part.inventory.items()
        ]
        result = verdicts.get(address)
        reason = result['reason'] if result else 'its class is none of an accelerator'
        # Placement has exactly the devices that the agent offers.
        is_offered = result is not None and result['offered']
        assert bool(any(part.free for part in parts.values())) == is_offered, address
        ids, pci_class = (result['ids'], result['class']) if result else ('-', '-')
        yield fixture, address, ids, pci_class, ' + '.join(inventories) or '-', reason


# --- targets of SPDK ---


@pytest.mark.parametrize('host', ['nvme-lvm'], indirect=True)
def test_spdk_target_is_bound_and_released(
    host: FixtureAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets: list[FakeSpdk] = []
    build = host.fixture.build
    initiators: list[str] = []  # NQNs of instances with a connection

    def build_with_spdk() -> Path:
        root = build()
        targets.append(FakeSpdk(root))
        targets[-1].connections = initiators
        boot(root, f'boot-{len(targets)}')
        return root

    monkeypatch.setattr(host.fixture, 'build', build_with_spdk)
    host.switch_on()
    (spdk,) = targets
    provider = host.providers()[f'nvmf-{NQN}']
    assert (provider.inventory, provider.free) == ({'CUSTOM_NVMF': 1}, 1)
    profile = host.cloud.create_profile('CUSTOM_NVMF', attach_target='host')
    instance = host.cloud.boot_bound(
        'CUSTOM_NVMF', provider=provider.uuid, profile=profile
    )
    ((handle_type, info),) = host.handles(f'nvmf-{NQN}')
    assert (handle_type, info['nqn']) == ('NVMF', NQN)
    nqn = f'nqn.2014-08.org.nvmexpress:uuid:{instance.uuid}'
    assert spdk.list_hosts() == [nqn]
    assert not has_connected(spdk)
    host.cloud.nova.rules.servers[instance.uuid] = host.name
    host.cloud.until(lambda: has_connected(spdk), 'the spawned instance is checked')
    initiators.append(nqn)
    host.settle()
    # A reboot of the host restarts SPDK.
    host.switch_on()
    spdk.stop()
    spdk = targets[-1]
    assert spdk.list_hosts() == [nqn]
    assert has_connected(spdk)
    assert instance.states() == {'Bound'}
    instance.end()
    assert spdk.list_hosts() == []
    spdk.stop()


def has_connected(spdk: FakeSpdk) -> bool:
    methods = [call['method'] for call in spdk.calls]
    return 'nvmf_subsystem_get_controllers' in methods


# --- cards that Nova has, too ---


def test_card_in_nova_configuration_is_not_offered(host: FixtureAgent) -> None:
    host.switch_on()
    before, cloud = host.providers(), host.cloud
    spec = {'address': IDLE}
    host.nova_file.write_text(f'[pci]\ndevice_spec = {json.dumps(spec)}\n')
    cloud.until(lambda: host.providers().keys() == {CUT}, 'the card is withdrawn')
    health, reason = host.health(IDLE)
    assert health == 'conflict'
    assert 'driver NVIDIA' in reason or 'nvidia_gpu_driver' in reason
    assert 'device_spec' in reason
    host.nova_file.write_text('')
    cloud.until(lambda: host.providers() == before, 'the card is offered again')
    assert host.health(IDLE)[0] == 'ok'


# --- cards that the kernel log reports ---


def log_xid(host: FixtureAgent, number: int, record: int = 1) -> None:
    """Add a line to the kernel log of the host."""
    microseconds = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6)
    text = f'NVRM: Xid (PCI:{IDLE.partition(".")[0]}): {number}, pid=1, text'
    with open(host.root / FILE, 'a') as file:
        file.write(f'3,{record},{microseconds},-;{text}\n')


def test_fatal_xid_quarantines_card_until_operator_clears(
    host: FixtureAgent,
) -> None:
    host.switch_on()
    cloud, before = host.cloud, host.providers()[IDLE]
    (resource_class,) = before.inventory
    instance = cloud.boot_bound(resource_class, provider=before.uuid)
    log_xid(host, 79)
    cloud.until(lambda: host.health(IDLE)[0] == 'withheld', 'the card is withheld')
    assert 'has fallen off the bus' in host.health(IDLE)[1]
    assert instance.states() == {'Bound'}
    instance.end()
    host.settle()
    assert host.providers()[IDLE].free == 0
    newest = cloud.api({**ADMIN, 'OpenStack-API-Version': 'accelerator latest'})
    path = f'/v2/devices/{host.devices()[IDLE]}'
    kinds = [
        event['kind']
        for event in expect(newest.ask('GET', f'{path}/events'), 200)['events']
    ]
    # The history follows the card, which other tests have in other hosts.
    assert kinds[:2] == ['quarantined', 'added']
    items = expect(newest.ask('GET', '/v2/attention'), 200)['attention']
    assert ('unhealthy_device', IDLE) in {
        (item['kind'], item['subject']['name']) for item in items
    }
    # The next process of the agent finds no new line, and the card stays.
    log = (host.root / FILE).read_text()
    host.switch_on()
    (host.root / FILE).write_text(log)
    host.settle()
    assert host.providers()[IDLE].free == 0
    patch = [{'op': 'add', 'path': '/quarantine', 'value': {'name': 'Ada'}}]
    assert expect(newest.ask('PATCH', path, patch), 200)['quarantine'] is None
    cloud.until(lambda: host.providers()[IDLE].free, 'the card is offered again')
    log_xid(host, 79, record=2)
    cloud.until(lambda: not host.providers()[IDLE].free, 'a new error counts')
    # Another host with the card would have the quarantine.
    expect(newest.ask('PATCH', path, patch), 200)


def test_transient_xid_withholds_card_until_acknowledged(host: FixtureAgent) -> None:
    host.switch_on()
    assert host.providers()[IDLE].free
    log_xid(host, 151)
    host.cloud.until(lambda: not host.providers()[IDLE].free, 'the card is withheld')
    acknowledge(host.state_path, IDLE)
    host.cloud.until(lambda: host.providers()[IDLE].free, 'the card is offered again')
