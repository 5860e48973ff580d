# SPDX-License-Identifier: Apache-2.0
"""vGPUs of three generations, made and unmade by real daemons in an emulated kernel."""

import errno

from tests.fakes.vgpu_fixtures import cloud, host
from tests.fakes.vgpu_machine import VgpuHost, handed

__all__ = ['cloud', 'host']


def test_what_a_guest_is_given_is_made_and_unmade(host: VgpuHost) -> None:
    strangers, functions = host.made(), host.functions()
    assert strangers
    host.start_agent()
    guests = [host.boot_bound(number) for number in (0, 1)]
    given = handed(guests[0]) | handed(guests[1])
    assert len(given) == sum(host.generation.each)
    assert host.made() == given | strangers
    for guest in guests:
        host.end(guest)
    assert (host.made(), host.functions()) == (strangers, functions)
    assert host.held() == []


def test_a_bind_that_the_kernel_refuses_leaves_nothing(host: VgpuHost) -> None:
    """The second vGPU of the guest is refused: the first must go again."""
    before, functions = host.made(), host.functions()
    host.start_agent()
    host.kernel.refuse(host.generation.written, errno.EIO, after=1)
    guest = host.boot_on(0)
    host.cloud.until(guest.resolved, 'Nova hears of every request')
    assert guest.states() == {'BindFailed'}
    assert {event['status'] for event in guest.events()} == {'failed'}
    host.cloud.settle()
    assert (host.made(), host.functions(), host.held()) == (before, functions, [])
    made = [path for path, _ in host.kernel.written if host.generation.wrote(path)]
    assert len(made) >= 2
    # The card is none the worse for it.
    host.end(guest)
    host.end(host.boot_bound(0))


def test_a_bind_that_hangs_fails_and_is_undone_when_it_returns(host: VgpuHost) -> None:
    before, functions = host.made(), host.functions()
    host.start_agent(timeout=1)
    hanging = host.kernel.hang(host.generation.written)
    guest = host.boot_on(0)
    host.cloud.until(guest.resolved, 'Nova hears of every request')
    assert guest.states() == {'BindFailed'}
    assert host.made() == before
    hanging.set()
    host.cloud.settle()
    assert (host.made(), host.functions(), host.held()) == (before, functions, [])


def test_a_bind_that_is_slow_succeeds(host: VgpuHost) -> None:
    host.start_agent()
    slow = host.kernel.hang(host.generation.written)
    guest = host.boot_on(0)
    wrote = host.generation.wrote
    host.cloud.until(
        lambda: any(wrote(path) for path, _ in host.kernel.written), 'it is asked'
    )
    assert guest.states() == {'BindStarted'}
    slow.set()
    host.cloud.until(guest.resolved, 'Nova hears of every request')
    assert guest.states() == {'Bound'}
    assert handed(guest) <= host.made()
