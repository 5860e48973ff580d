# SPDX-License-Identifier: Apache-2.0
"""Why a device profile fits or does not, by a real Placement and by our own books."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.explaining import Explaining
from cyborg_lite.db import device_profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import ImpossibleDeviceProfile
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.explanations import Explanation, HostVerdict, Verdict, Why
from tests.fakes.databases import database_fixture
from tests.fakes.placed_host import FULL, Host, add_foreign, host, reserve
from tests.fakes.provider_rows import add_device, change_device
from tests.fakes.real_placement import CountedRemote, remote
from tests.fakes.rows import add_handles

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

Groups = list[dict[str, str]]
Explain = Callable[..., Explanation]

T4 = 'CUSTOM_NVIDIA_1EB8'


@pytest.fixture
def explain(database: Database, remote: CountedRemote) -> Explain:
    """Of a new profile with these groups."""

    def explained(*groups: dict[str, str]) -> Explanation:
        profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
        database.write(device_profiles.create, profile)
        explaining = Explaining(database, Placement(remote))
        return explaining.explain(None, profile.uuid, None)

    return explained


@pytest.fixture(autouse=True)
def _handles(database: Database, host: Host) -> None:
    add_handles(database, host.gpu, 4)


def only(found: Explanation) -> HostVerdict:
    (verdict,) = found.hosts
    return verdict


def why(found: Explanation) -> list[Why]:
    return [one.why for group in only(found).groups for one in group.reasons]


def test_a_free_card_fits(host: Host, explain: Explain) -> None:
    found = explain({'resources:PGPU': '4', f'trait:{T4}': 'required'})
    assert (found.verdict, only(found).fits) == (Verdict.FITS, True)
    assert only(found).hostname == host.name


def test_a_trait_that_is_missing_is_named(explain: Explain) -> None:
    found = explain({'resources:PGPU': '1', 'trait:CUSTOM_A100': 'required'})
    assert found.verdict is Verdict.NEVER
    assert why(found) == [Why.MISSING_TRAIT]
    assert only(found).groups[0].reasons[0].traits == ('CUSTOM_A100',)
    found = explain({'resources:PGPU': '1', f'trait:{T4}': 'forbidden'})
    assert why(found) == [Why.FORBIDDEN_TRAIT]


def test_a_trait_that_was_added_by_hand_counts(host: Host, explain: Explain) -> None:
    mine = f'CUSTOM_{uuid4().hex.upper()}'
    host.placement.ensure((), [mine])
    traits = {*host.read(host.gpu).traits, mine}
    host.placement.set_traits(host.gpu, host.generation(host.gpu), traits)
    wanted = {'resources:PGPU': '1', f'trait:{mine}': 'required'}
    assert explain(wanted).verdict is Verdict.FITS
    for _server in range(4):
        host.allocate(host.gpu)
    assert explain(wanted).verdict is Verdict.NOT_NOW


def test_a_full_host_is_told_from_an_impossible_one(
    host: Host, explain: Explain
) -> None:
    for _server in range(3):
        host.allocate(host.gpu)
    assert explain({'resources:PGPU': '1'}).verdict is Verdict.FITS
    found = explain({'resources:PGPU': '2'})
    assert found.verdict is Verdict.NOT_NOW
    # The Placement of the tests has cards of other tests.
    assert {one.why for one in found.warnings} <= {Why.STRANGERS}
    # By our books nobody holds them: a server that is being built, or a leak.
    assert why(found) == [Why.NOT_OFFERED]
    assert explain({'resources:PGPU': '5'}).verdict is Verdict.NEVER


def test_a_card_in_maintenance_says_why(
    database: Database, host: Host, explain: Explain
) -> None:
    change_device(database, host.gpu, status='maintaining', status_reason='a fan')
    host.sync()
    found = explain({'resources:PGPU': '1'})
    assert why(found) == [Why.MAINTENANCE]
    assert 'a fan' in only(found).groups[0].reasons[0].text


def test_what_was_reserved_by_hand_is_not_offered(host: Host, explain: Explain) -> None:
    reserve(host)
    found = explain({'resources:PGPU': '1'})
    assert found.verdict is Verdict.NOT_NOW
    assert why(found) == [Why.NOT_OFFERED]
    assert 'reservations' in only(found).groups[0].reasons[0].text


def test_two_whole_cards_are_two_groups(
    database: Database, host: Host, explain: Explain
) -> None:
    for slot in ('0000:5e:00.0', '0000:86:00.0'):
        card = add_device(database, host.name, slot, resource_class='CUSTOM_CARD')
        change_device(database, card, address=slot)
        add_handles(database, card, 1)
    host.sync()
    found = explain({'resources:CUSTOM_CARD': '2'})
    assert found.verdict is Verdict.NEVER
    assert [one.why for one in found.warnings] == [Why.TOO_FEW_UNITS]
    single = {'resources:CUSTOM_CARD': '1'}
    assert explain(single, single).verdict is Verdict.FITS
    third = explain(single, single, single)
    assert [one.why for one in only(third).reasons] == [Why.NOT_TOGETHER]
    assert third.verdict is Verdict.NEVER


@pytest.mark.parametrize('name', ['GPU', 'CUSTOM_UNKNOWN', 'FPGA'])
def test_a_class_that_nobody_has_is_no_error_of_placement(
    explain: Explain, name: str
) -> None:
    found = explain({f'resources:{name}': '1'})
    assert found.verdict is Verdict.NEVER
    assert why(found) == [Why.MISSING_CLASS]


def test_providers_of_others_are_warned_of(host: Host, explain: Explain) -> None:
    theirs = add_foreign(host, f'{host.name}_theirs', host.root.uuid, 'OWNER_NOVA')
    found = explain({'resources:VGPU': '1', 'trait:OWNER_NOVA': 'required'})
    warnings = {one.why: one for one in found.warnings}
    assert theirs in warnings[Why.STRANGERS].providers
    assert found.verdict is Verdict.NEVER


def test_groups_that_are_alike_are_asked_for_once(
    remote: CountedRemote, explain: Explain
) -> None:
    group = {'resources:PGPU': '1', f'trait:{T4}': 'required'}
    remote.sent.clear()
    explain(group, group, group, {'resources:PGPU': '1'})
    assert len(remote.sent) == 3


def test_what_could_never_be_is_refused(
    database: Database, remote: CountedRemote, host: Host
) -> None:
    explaining = Explaining(database, Placement(remote))
    for _server in range(4):
        host.allocate(host.gpu)
    explaining.check('full', [{'resources:PGPU': '4'}])
    with pytest.raises(ImpossibleDeviceProfile) as refused:
        explaining.check('two', [{'resources:PGPU': '4'}, {'resources:PGPU': '5'}])
    assert 'groups[1]' in refused.value.text
    assert FULL.total == 4
