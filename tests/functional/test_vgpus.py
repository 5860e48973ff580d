# SPDX-License-Identifier: Apache-2.0
"""vGPUs of three generations, created and deleted by real daemons."""

import errno

from tests.servers.vgpu_fixtures import cloud, host
from tests.servers.vgpu_machine import VgpuHost, read_vgpus

__all__ = ['cloud', 'host']


def test_bind_creates_and_release_deletes_vgpus(host: VgpuHost) -> None:
    foreign_vgpus, functions = host.list_vgpus(), host.functions()
    assert foreign_vgpus
    host.start_agent()
    guests = [host.boot_bound(number) for number in (0, 1)]
    vgpus = read_vgpus(guests[0]) | read_vgpus(guests[1])
    assert len(vgpus) == sum(host.generation.vgpus_per_card)
    devices = {device.source for g in guests for device in host.define_guest(g)}
    assert devices == {vgpu.uuid or vgpu.function for vgpu in vgpus}
    # Nova has created none.
    assert host.list_vgpus() == vgpus | foreign_vgpus
    for guest in guests:
        host.end(guest)
    assert (host.list_vgpus(), host.functions()) == (foreign_vgpus, functions)
    assert host.list_allocated_arqs() == []


def test_bind_refused_by_kernel_leaves_nothing(host: VgpuHost) -> None:
    """The second vGPU is refused, so the first must be deleted."""
    before, functions = host.list_vgpus(), host.functions()
    host.start_agent()
    host.kernel.refuse(host.generation.creation_path, errno.EIO, after=1)
    guest = host.boot_on(0)
    host.cloud.until(guest.is_resolved, 'Nova receives an event per ARQ')
    assert guest.states() == {'BindFailed'}
    assert {event['status'] for event in guest.events()} == {'failed'}
    host.settle()
    assert (host.list_vgpus(), host.functions(), host.list_allocated_arqs()) == (
        before,
        functions,
        [],
    )
    paths = [
        path for path, _ in host.kernel.written if host.generation.creates_vgpu(path)
    ]
    assert len(paths) >= 2
    # The card is usable afterwards.
    host.end(guest)
    host.end(host.boot_bound(0))
