# SPDX-License-Identifier: Apache-2.0
"""Hosts with vGPUs of three generations are booted under their guests.

Real daemons and an emulated kernel, which a boot leaves with nothing but the cards.
"""

from tests.fakes.stack import NOVA, Instance
from tests.fakes.vgpu_fixtures import cloud, host
from tests.fakes.vgpu_machine import Made, VgpuHost, handed

__all__ = ['cloud', 'host']


def boot_guests(host: VgpuHost) -> set[Made]:
    """One on each card; what they were given."""
    host.start_agent()
    given: set[Made] = set()
    for number in (0, 1):
        given |= handed(host.boot_bound(number))
    return given


def events(host: VgpuHost, status: str = 'completed') -> list[tuple[str, str]]:
    """Guest and request of each that Nova heard of."""
    told = [event for guest in host.guests for event in guest.events()]
    return sorted(
        (event['server_uuid'], event['tag'])
        for event in told
        if event['status'] == status
    )


def states(host: VgpuHost) -> set[str]:
    """Of all requests, as an administrator sees them in the newest version."""
    return {arq['state'] for guest in host.guests for arq in shown(guest)}


# Any: JSON of the API.
def shown(guest: Instance) -> list[dict[str, str]]:
    service = guest.cloud.api({**NOVA, 'OpenStack-API-Version': 'accelerator latest'})
    found: list[dict[str, str]] = service.ask('GET', guest.path).body['arqs']
    return found


def statuses(host: VgpuHost) -> set[int]:
    """What Nova is answered that is about to start the guests."""
    api = host.cloud.api(NOVA)
    return {api.ask('GET', guest.path).status for guest in host.guests}


def test_agent_first_nova_first_and_conductor_last(host: VgpuHost) -> None:
    """All three, one after the other: what is rebuilt can be rebuilt again."""
    cloud = host.cloud
    given = boot_guests(host)
    first = events(host)
    assert len(first) == len(given)

    # The agent says that it is ready when all is there, of the same name and place.
    host.power_cycle()
    assert not host.made()
    host.start_agent()
    assert host.made() == given
    cloud.until(lambda: events(host) == sorted(first * 2), 'they are bound again')
    assert states(host) == {'Bound'}

    # Nova asks while a card takes its time.
    host.power_cycle()
    slow = host.kernel.hang(host.generation.written)
    agent = host.begin_agent()
    cloud.until(lambda: states(host) == {'Provisioning'}, 'the boot is noticed')
    assert statuses(host) == {423}
    assert 'Ready.' not in cloud.log(agent)
    slow.set()
    cloud.until(lambda: events(host) == sorted(first * 3), 'they are bound again')
    assert statuses(host) == {200}
    assert host.made() == given

    # There is no conductor until the host has done its work.
    (conductor,) = (one for one in cloud.children if 'conductor' in one.name)
    conductor.kill()
    host.power_cycle()
    host.start_agent()
    assert host.made() == given
    assert events(host) == sorted(first * 3)
    cloud.restart(conductor, 'conductor')
    cloud.until(lambda: events(host) == sorted(first * 4), 'they are bound again')
    assert states(host) == {'Bound'}

    handles = {arq['attach_handle_uuid'] for g in host.guests for arq in g.shown()}
    assert len(handles) == len(given)
    for guest in host.guests:
        host.end(guest)
    assert (host.made(), host.held()) == (set(), [])


def test_what_cannot_be_rebuilt_fails_and_the_rest_goes_on(host: VgpuHost) -> None:
    """One card of two is broken by the boot."""
    boot_guests(host)
    broken, well = host.guests
    kept = handed(well)
    host.power_cycle()
    address = host.generation.cards[0]
    host.kernel.break_off(address.removesuffix('.0'))
    host.start_agent(patience=0)
    assert host.made() == kept
    cloud = host.cloud
    cloud.until(lambda: len(events(host, 'failed')) == len(broken.arqs), 'some fail')
    cloud.until(lambda: host.held() == sorted(well.arqs), 'handles are given back')
    assert {arq['state'] for arq in shown(broken)} == {'BindFailed'}
    reasons = {arq['status_reason'] for arq in shown(broken)}
    assert all(address.rpartition(':')[0] in reason for reason in reasons), reasons
    assert well.states() == {'Bound'}
    assert statuses(host) == {200}
    for guest in (broken, well):
        host.end(guest)
    assert (host.made(), host.held()) == (set(), [])


def test_a_driver_that_is_loaded_again_finds_what_it_had_made(host: VgpuHost) -> None:
    """The host was not booted: nobody but the agent can notice."""
    given = boot_guests(host)
    first = events(host)
    host.kernel.reload_driver()
    cloud = host.cloud
    cloud.until(lambda: host.made() == given, 'all is made again')
    cloud.until(lambda: 'Rebuilt' in steps(host.guests[1]), 'the conductor hears of it')
    # No guest can have run meanwhile, and none is told anything.
    assert states(host) == {'Bound'}
    assert events(host) == first
    host.end(host.guests[1])
    assert host.made() == handed(host.guests[0])
    host.end(host.guests[0])
    assert (host.made(), host.held()) == (set(), [])


def test_a_driver_that_stays_away_is_told_of_until_it_is_back(host: VgpuHost) -> None:
    given = boot_guests(host)
    address = host.generation.cards[0].removesuffix('.0')
    host.kernel.break_off(address)
    host.kernel.reload_driver()
    cloud = host.cloud
    cloud.until(lambda: host.made() == handed(host.guests[1]), 'one card is well')
    cloud.until(lambda: 'NotRebuilt' in steps(host.guests[0]), 'the other is told of')
    host.kernel.mend()
    cloud.until(lambda: host.made() == given, 'all is made again')
    cloud.until(lambda: 'Rebuilt' in steps(host.guests[0]), 'the conductor hears of it')
    for guest in host.guests:
        host.end(guest)


def steps(guest: Instance) -> list[str]:
    """Of all its requests."""
    arqs = ', '.join(f"'{uuid}'" for uuid in guest.arqs)
    query = f'SELECT step FROM arq_events WHERE arq_uuid IN ({arqs}) ORDER BY id'
    return [step for (step,) in guest.cloud.rows(query)]  # type: ignore[attr-defined]
