# SPDX-License-Identifier: Apache-2.0
"""Reasons why a device profile fits or not, by a real Placement and the database."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import now
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.capacity.explanations import (
    Explanation,
    FitResult,
    HostFit,
    ReasonCode,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from tests.builders.provider_rows import add_device, change_device
from tests.builders.rows import add_handles
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, add_foreign, host, reserve
from tests.servers.placement import CountedRemote, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

Explain = Callable[..., Explanation]


@pytest.fixture
def explain(database: Database, remote: CountedRemote) -> Explain:
    """Return a function that explains a new profile with the given groups."""

    def explain_groups(*groups: dict[str, str]) -> Explanation:
        profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
        database.write(profiles.create_profile, profile)
        explaining = ExplanationService(database, Placement(remote))
        return explaining.explain(None, profile.uuid, None)

    return explain_groups


@pytest.fixture(autouse=True)
def _handles(database: Database, host: Host) -> None:
    add_handles(database, host.gpu, 4)


def only(explanation: Explanation) -> HostFit:
    (verdict,) = explanation.hosts
    return verdict


def list_codes(explanation: Explanation) -> list[ReasonCode]:
    return [entry.code for group in only(explanation).groups for entry in group.reasons]


def test_explain_uses_trait_added_in_placement(host: Host, explain: Explain) -> None:
    own_trait = f'CUSTOM_{uuid4().hex.upper()}'
    host.placement.create_custom_names((), [own_trait])
    traits = {*host.read(host.gpu).traits, own_trait}
    host.placement.set_traits(host.gpu, host.generation(host.gpu), traits)
    group = {'resources:PGPU': '1', f'trait:{own_trait}': 'required'}
    assert explain(group).result is FitResult.FITS
    for _server in range(4):
        host.allocate(host.gpu)
    assert explain(group).result is FitResult.NOT_NOW


def test_explain_separates_full_host_from_impossible_profile(
    host: Host, explain: Explain
) -> None:
    for _server in range(3):
        host.allocate(host.gpu)
    assert explain({'resources:PGPU': '1'}).result is FitResult.FITS
    explanation = explain({'resources:PGPU': '2'})
    assert explanation.result is FitResult.NOT_NOW
    # The Placement of the tests has cards of other tests.
    assert {entry.code for entry in explanation.warnings} <= {ReasonCode.STRANGERS}
    # The database has no ARQ for them: an instance is being built, or there is a leak.
    assert list_codes(explanation) == [ReasonCode.NOT_OFFERED]
    assert explain({'resources:PGPU': '5'}).result is FitResult.NEVER


def test_explain_manual_reservation_is_no_capacity(
    host: Host, explain: Explain
) -> None:
    reserve(host)
    explanation = explain({'resources:PGPU': '1'})
    assert explanation.result is FitResult.NOT_NOW
    assert list_codes(explanation) == [ReasonCode.NOT_OFFERED]
    assert 'reservations' in only(explanation).groups[0].reasons[0].text


def test_explain_two_undivided_cards_need_two_groups(
    database: Database, host: Host, explain: Explain
) -> None:
    for slot in ('0000:5e:00.0', '0000:86:00.0'):
        card = add_device(database, host.name, slot, resource_class='CUSTOM_CARD')
        change_device(database, card, control_address=slot)
        add_handles(database, card, 1)
    host.sync()
    explanation = explain({'resources:CUSTOM_CARD': '2'})
    assert explanation.result is FitResult.NEVER
    assert [entry.code for entry in explanation.warnings] == [ReasonCode.TOO_FEW_UNITS]
    single = {'resources:CUSTOM_CARD': '1'}
    assert explain(single, single).result is FitResult.FITS
    third = explain(single, single, single)
    assert [entry.code for entry in only(third).reasons] == [ReasonCode.NOT_TOGETHER]
    assert third.result is FitResult.NEVER


@pytest.mark.parametrize('name', ['GPU', 'CUSTOM_UNKNOWN', 'FPGA'])
def test_explain_unknown_class_raises_no_placement_error(
    explain: Explain, name: str
) -> None:
    explanation = explain({f'resources:{name}': '1'})
    assert explanation.result is FitResult.NEVER
    assert list_codes(explanation) == [ReasonCode.MISSING_CLASS]


def test_explain_foreign_providers_returns_warning(
    host: Host, explain: Explain
) -> None:
    foreign = add_foreign(host, f'{host.name}_theirs', host.root.uuid, 'OWNER_NOVA')
    explanation = explain({'resources:VGPU': '1', 'trait:OWNER_NOVA': 'required'})
    warnings = {entry.code: entry for entry in explanation.warnings}
    assert foreign in warnings[ReasonCode.STRANGERS].providers
    assert explanation.result is FitResult.NEVER
