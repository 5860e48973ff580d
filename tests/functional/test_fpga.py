# SPDX-License-Identifier: Apache-2.0
"""FPGAs from a Glance image to traits in Placement, with real services."""

from pathlib import Path

import pytest
from sqlalchemy import select

from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable
from cyborg_lite.db.profiles import profiles
from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.model.bitstreams.bitstreams import TAG
from cyborg_lite.model.profiles.device_profiles import ProfileChange
from cyborg_lite.model.profiles.selector_keys import (
    compile_group,
    name_bitstream_attribute,
)
from tests.builders.bitstream_files import (
    LARGEST,
    OTHER_FUNCTION,
    gbs,
    image,
    xclbin,
)
from tests.builders.fpga_reports import FACTORY, function_trait
from tests.builders.selector_fleets import SyncRunner, create_profile, find_trait
from tests.hosts.driver_benches import LOADING, fpga_bench
from tests.hosts.fpga_host import DisconnectableGlance, FpgaHost
from tests.servers.databases import database_fixture
from tests.servers.glance import RealGlance, build_client, real_glance
from tests.servers.placement import CountedRemote, remote

__all__ = ['real_glance', 'remote']

database = database_fixture('sqlite')

_INTEL, _XILINX = '0000:5e:00.0', '0000:d8:00.0'
_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'
_OF_XILINX = {
    'vendor': 'xilinx',
    'board': 'u250',
    'version': '4.1',
    'shell_id': _INTERFACE,
    'region_uuid': _INTERFACE,
}
_LOADABLE = select(Deployable.loadable)
# A refused bind must leave nothing on the disk of the host.
_NOTHING: list[str] = []


@pytest.fixture
def shop(real_glance: RealGlance) -> DisconnectableGlance:
    return DisconnectableGlance(build_client(real_glance.endpoint))


@pytest.fixture
def intel(
    database: Database,
    remote: CountedRemote,
    shop: DisconnectableGlance,
    tmp_path: Path,
) -> FpgaHost:
    return FpgaHost(database, remote, tmp_path, 'Intel FPGA', shop)


@pytest.fixture
def xilinx(
    database: Database,
    remote: CountedRemote,
    shop: DisconnectableGlance,
    tmp_path: Path,
) -> FpgaHost:
    return FpgaHost(database, remote, tmp_path, 'Xilinx FPGA', shop)


def upload_image(glance: RealGlance, content: bytes, **properties: str) -> str:
    properties = {**image().properties, **properties}
    return glance.upload(content, (TAG,), properties)


def by_id(uuid: str) -> dict[str, str]:
    return {'accel:bitstream_id': uuid}


def test_bind_loads_bitstream_and_updates_placement(
    intel: FpgaHost, real_glance: RealGlance
) -> None:
    before, _ = intel.read_provider(_INTEL)
    assert function_trait(FACTORY) in before
    uuid = upload_image(real_glance, gbs())
    assert intel.state(intel.bind(_INTEL, by_id(uuid))) == 'Bound'
    traits, inventories = intel.read_provider(_INTEL)
    assert function_trait(OTHER_FUNCTION) in traits
    assert function_trait(FACTORY) not in traits
    assert inventories == {'FPGA': (1, 0)}
    # The next report has the same content, with or without a scan.
    intel.store_last_report()
    assert intel.read_provider(_INTEL)[0] == traits
    intel.report()
    assert intel.read_provider(_INTEL)[0] == traits


def test_release_restores_previous_bitstream_without_glance(
    intel: FpgaHost, real_glance: RealGlance, shop: DisconnectableGlance
) -> None:
    first = upload_image(real_glance, gbs(function='cd' * 16), function_uuid='cd' * 16)
    region = intel.bind(_INTEL, by_id(first))
    intel.release(region)
    intel.report()
    before, _ = intel.read_provider(_INTEL)
    # The factory function cannot be restored, so the last one stays.
    assert function_trait('cd' * 16) in before
    instance = intel.bind(_INTEL, by_id(upload_image(real_glance, gbs())))
    assert function_trait(OTHER_FUNCTION) in intel.read_provider(_INTEL)[0]
    shop.is_down = True
    intel.release(instance)
    assert intel.read_provider(_INTEL) == (before, {'FPGA': (1, 0)})
    assert len(intel.kernel.regions.commands) == 3


def test_new_agent_recognizes_card_of_guest(
    intel: FpgaHost, real_glance: RealGlance
) -> None:
    first, second = (
        upload_image(real_glance, gbs(function=function), function_uuid=function)
        for function in ('cd' * 16, OTHER_FUNCTION)
    )
    assert_known_to_a_new_agent(intel, _INTEL, _INTEL, [first, second])


def assert_known_to_a_new_agent(
    site: FpgaHost, card: str, read_handles: str, images: list[str]
) -> None:
    """Check that a new agent offers the first image when the guest has ended."""
    site.release(site.bind(card, by_id(images[0])))
    before = site.read_provider(card)
    instance = site.bind(card, by_id(images[1]))
    bound = site.read_provider(card)
    site.report()
    with site.guest(read_handles):
        site.start()
        site.report()
        assert site.read_provider(card) == bound
    site.release(instance)
    assert site.read_provider(card) == before


@pytest.mark.parametrize(
    ('changes', 'result'), [({}, 'fits'), ({'vendor': 'xilinx'}, 'never')]
)
def test_placement_offers_cards_that_can_load_bitstream(
    changes: dict[str, str],
    result: str,
    intel: FpgaHost,
    real_glance: RealGlance,
    shop: DisconnectableGlance,
) -> None:
    group = {
        'resources:FPGA': '1',
        **by_id(upload_image(real_glance, gbs(), **changes)),
    }
    compiled = compile_group('groups[0]', group, ())
    create_profile(intel.database, compiled)
    runner = SyncRunner(
        intel.database, intel.placement, BitstreamCatalog(shop, LARGEST)
    )
    runner.run()
    offers = intel.placement.list_candidates({'FPGA': 1}, {find_trait(compiled)}, ())
    assert (len(offers) > 0) == (result == 'fits')
    # Groups of earlier microversions have no trait.
    profile = create_profile(intel.database, group)
    service = ExplanationService(
        intel.database, intel.placement, catalog=BitstreamCatalog(shop, LARGEST)
    )
    explanation = service.explain(None, profile.uuid, None)
    assert explanation.result == result
    capacity = service.count_capacity(None, profile.uuid, None)
    assert (capacity.servers > 0) == (result == 'fits')
    reasons = [item for item in explanation.warnings if item.code == 'image-refused']
    assert len(reasons) == (result == 'never')
    assert all('It is for vendor xilinx' in item.text for item in reasons)


def test_former_groups_keep_their_bitstreams(
    intel: FpgaHost, real_glance: RealGlance, shop: DisconnectableGlance
) -> None:
    """ARQs that were created before an edit are bound after it."""
    image_key = by_id(upload_image(real_glance, gbs()))
    compiled = compile_group('groups[0]', {'resources:FPGA': '1', **image_key}, ())
    profile = create_profile(intel.database, compiled)
    runner = SyncRunner(
        intel.database, intel.placement, BitstreamCatalog(shop, LARGEST)
    )
    runner.run()
    change = ProfileChange(('groups',), groups=({'resources:FPGA': '1'},))
    intel.database.write(profiles.update_profile, profile.uuid, change, None, None)
    runner.run()
    stored = intel.database.read(lambda session: session.scalars(_LOADABLE).all())
    assert [name_bitstream_attribute(compiled)] in stored
    trait = find_trait(compiled)
    assert not intel.placement.list_candidates({'FPGA': 1}, {trait}, ())


# --- reboots ------------------------------------------------------------------------


def test_reboot_restores_bitstream_without_glance(
    intel: FpgaHost, real_glance: RealGlance, shop: DisconnectableGlance
) -> None:
    instance = intel.bind(_INTEL, by_id(upload_image(real_glance, gbs())))
    bound = intel.read_provider(_INTEL)
    shop.is_down = True
    intel.boot()
    assert intel.state(instance) == 'Bound'
    assert intel.read_provider(_INTEL) == bound
    assert len(intel.kernel.regions.commands) == 2


# --- Xilinx -------------------------------------------------------------------------

_PAIR = {'trait:CUSTOM_FPGA_XILINX': 'required'}


def test_bind_xilinx_loads_once_for_two_arqs(
    xilinx: FpgaHost, real_glance: RealGlance
) -> None:
    content = xclbin(_INTERFACE, OTHER_FUNCTION)
    uuid = upload_image(real_glance, content, **_OF_XILINX)
    instance = xilinx.bind(_XILINX, {**_PAIR, **by_id(uuid)})
    assert xilinx.state(instance) == 'Bound'
    first, second = xilinx.arqs(instance)
    assert first.attach_handle_info['function'] == '1'
    assert (second.attach_handle_type, second.attach_handle_info) == (None, {})
    assert len(xilinx.kernel.regions.commands) == 1
    xilinx.release(instance)
    assert xilinx.arqs(instance) == ()
    assert xilinx.state(xilinx.bind(_XILINX, _PAIR)) == 'Bound'


# --- between two instances ----------------------------------------------------------


@pytest.fixture
def default_intel(
    database: Database,
    remote: CountedRemote,
    shop: DisconnectableGlance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> FpgaHost:
    """Return a host with the default cleaning and without a blank bitstream."""
    bench = fpga_bench(IntelFpga, 'fpga-intel', offer_management_function=True)
    monkeypatch.setitem(LOADING, 'Intel FPGA', bench)
    return FpgaHost(database, remote, tmp_path, 'Intel FPGA', shop)


def test_next_instance_never_gets_former_logic(
    default_intel: FpgaHost, real_glance: RealGlance
) -> None:
    intel = default_intel
    group = by_id(upload_image(real_glance, gbs()))
    first = intel.bind(_INTEL, group)
    intel.release(first)
    instance = intel.bind(_INTEL, {})
    (arq,) = intel.arqs(instance)
    assert arq.state.value == 'BindFailed'
    assert 'contains the logic of an earlier instance' in str(arq.status_reason)
    assert intel.read_provider(_INTEL)[1] == {'FPGA': (1, 0)}
    intel.release(instance)
    # The same image is loaded again.
    assert intel.state(intel.bind(_INTEL, group)) == 'Bound'
    assert len(intel.kernel.regions.commands) == 2
