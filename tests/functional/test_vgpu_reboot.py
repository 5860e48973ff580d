# SPDX-License-Identifier: Apache-2.0
"""Hosts of three vGPU generations are rebooted with running instances.

Real daemons and an emulated kernel; after a reboot only the cards remain.
"""

import pytest

from tests.servers.stack import NOVA, Instance
from tests.servers.vgpu_fixtures import cloud, host
from tests.servers.vgpu_machine import Vgpu, VgpuHost, read_vgpus

__all__ = ['cloud', 'host']


def boot_guests(host: VgpuHost) -> set[Vgpu]:
    """Boot an instance on each card and return the vGPUs."""
    host.start_agent()
    vgpus: set[Vgpu] = set()
    for number in (0, 1):
        vgpus |= read_vgpus(host.boot_bound(number))
    return vgpus


def events(host: VgpuHost, status: str = 'completed') -> list[tuple[str, str]]:
    """Return instance and ARQ of each event that Nova received."""
    received = [event for guest in host.guests for event in guest.events()]
    return sorted(
        (event['server_uuid'], event['tag'])
        for event in received
        if event['status'] == status
    )


def states(host: VgpuHost) -> set[str]:
    """Return the states of all ARQs as an administrator sees them in 2.4."""
    return {arq['state'] for guest in host.guests for arq in list_arqs(guest)}


# Any: JSON of the API.
def list_arqs(guest: Instance) -> list[dict[str, str]]:
    service = guest.cloud.api({**NOVA, 'OpenStack-API-Version': 'accelerator latest'})
    arqs: list[dict[str, str]] = service.ask('GET', guest.path).body['arqs']
    return arqs


def start_status(guest: Instance) -> int:
    """Return the status code that Nova receives when it starts an instance."""
    return guest.cloud.api(NOVA).ask('GET', guest.path).status


def statuses(host: VgpuHost) -> set[int]:
    """Return the status codes that Nova receives when it starts the instances."""
    return {start_status(guest) for guest in host.guests}


def test_reboot_rebuilds_vgpus_in_each_order(host: VgpuHost) -> None:
    """Three reboots in a row: rebuilt vGPUs can be rebuilt again."""
    cloud = host.cloud
    vgpus = boot_guests(host)
    first = events(host)
    assert len(first) == len(vgpus)

    # The agent reports ready after all vGPUs exist with the same names and places.
    host.power_cycle()
    assert not host.list_vgpus()
    host.start_agent()
    assert host.list_vgpus() == vgpus
    cloud.until(lambda: events(host) == sorted(first * 2), 'the ARQs are bound again')
    assert states(host) == {'Bound'}

    # Nova reads the ARQs while a card is slow.
    host.power_cycle()
    slow = host.kernel.hang(host.generation.creation_path)
    agent = host.begin_agent()
    cloud.until(lambda: states(host) == {'Provisioning'}, 'the reboot is recorded')
    assert statuses(host) == {423}
    assert 'Ready.' not in cloud.log(agent)
    slow.set()
    cloud.until(lambda: events(host) == sorted(first * 3), 'the ARQs are bound again')
    for guest in host.guests:
        host.define_guest(guest)  # Nova creates no mdev after a 200
    assert host.list_vgpus() == vgpus

    # No conductor runs until the host is finished.
    (conductor,) = (child for child in cloud.children if 'conductor' in child.name)
    conductor.kill()
    host.power_cycle()
    host.start_agent()
    assert host.list_vgpus() == vgpus
    assert events(host) == sorted(first * 3)
    cloud.restart(conductor, 'conductor')
    cloud.until(lambda: events(host) == sorted(first * 4), 'the ARQs are bound again')
    assert states(host) == {'Bound'}

    handles = {arq['attach_handle_uuid'] for g in host.guests for arq in g.list_arqs()}
    assert len(handles) == len(vgpus)
    for guest in host.guests:
        host.end(guest)
    assert (host.list_vgpus(), host.list_allocated_arqs()) == (set(), [])


@pytest.mark.parametrize('host', ['mdevs of virtual functions'], indirect=True)
def test_reboot_failed_rebuild_fails_only_its_arqs(host: VgpuHost) -> None:
    """The reboot breaks one card of two."""
    boot_guests(host)
    broken, well = host.guests
    rebuilt = read_vgpus(well)
    host.power_cycle()
    address = host.generation.cards[0]
    host.kernel.break_off(address.removesuffix('.0'))
    host.start_agent(patience=0)
    assert host.list_vgpus() == rebuilt
    cloud = host.cloud
    cloud.until(
        lambda: len(events(host, 'failed')) == len(broken.arqs),
        'the ARQs of one card fail',
    )
    cloud.until(
        lambda: host.list_allocated_arqs() == sorted(well.arqs),
        'its handles are released',
    )
    assert {arq['state'] for arq in list_arqs(broken)} == {'BindFailed'}
    reasons = {arq['status_reason'] for arq in list_arqs(broken)}
    assert all(address.rpartition(':')[0] in reason for reason in reasons), reasons
    assert well.states() == {'Bound'}
    # Nova must start only the instance whose vGPUs exist.
    assert (start_status(broken), start_status(well)) == (409, 200)
    for guest in (broken, well):
        host.end(guest)
    assert (host.list_vgpus(), host.list_allocated_arqs()) == (set(), [])


@pytest.mark.parametrize('host', ['types of virtual functions'], indirect=True)
def test_driver_reload_rebuilds_vgpus(host: VgpuHost) -> None:
    """The agent detects the loss itself, because there is no reboot."""
    vgpus = boot_guests(host)
    first = events(host)
    host.kernel.reload_driver()
    cloud = host.cloud
    cloud.until(lambda: host.list_vgpus() == vgpus, 'the vGPUs exist again')
    cloud.until(lambda: 'Rebuilt' in steps(host, 1), 'the rebuild is recorded')
    # ARQs are Unknown while their device is lost. Nova receives no event.
    cloud.until(lambda: states(host) == {'Bound'}, 'the devices are reported again')
    assert events(host) == first
    host.end(host.guests[1])
    assert host.list_vgpus() == read_vgpus(host.guests[0])
    host.end(host.guests[0])
    assert (host.list_vgpus(), host.list_allocated_arqs()) == (set(), [])


@pytest.mark.parametrize('host', ['mdevs'], indirect=True)
def test_driver_reload_with_failure_is_repaired_later(host: VgpuHost) -> None:
    vgpus = boot_guests(host)
    address = host.generation.cards[0].removesuffix('.0')
    host.kernel.break_off(address)
    host.kernel.reload_driver()
    cloud = host.cloud
    cloud.until(
        lambda: host.list_vgpus() == read_vgpus(host.guests[1]),
        'one card has its vGPUs',
    )
    cloud.until(lambda: 'NotRebuilt' in steps(host, 0), 'the failure is recorded')
    host.kernel.repair()
    cloud.until(lambda: host.list_vgpus() == vgpus, 'the vGPUs exist again')
    cloud.until(lambda: 'Rebuilt' in steps(host, 0), 'the rebuild is recorded')
    for guest in host.guests:
        host.end(guest)


def steps(host: VgpuHost, number: int) -> list[str]:
    """Return the recorded steps of the ARQs of an instance, by its number."""
    arqs = ', '.join(f"'{uuid}'" for uuid in host.guests[number].arqs)
    query = f'SELECT step FROM arq_events WHERE arq_uuid IN ({arqs}) ORDER BY id'
    return [step for (step,) in host.cloud.rows(query)]
