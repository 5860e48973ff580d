# SPDX-License-Identifier: Apache-2.0
"""An FPGA from its image in Glance to its traits in Placement, all of them real."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.db.engine import Database
from cyborg_lite.model.bitstreams import TAG
from tests.fakes.bitstream_files import (
    LARGEST,
    OTHER_FUNCTION,
    gbs,
    image,
    xclbin,
)
from tests.fakes.databases import database_fixture
from tests.fakes.fpga import FACTORY, function_trait
from tests.fakes.fpga_site import FpgaSite, Shop
from tests.fakes.kernel_regions import Fate
from tests.fakes.real_glance import RealGlance, real_glance
from tests.fakes.real_placement import CountedRemote, remote
from tests.functional.test_glance import client
from tests.unit.drivers.benches import LOADING

__all__ = ['real_glance', 'remote']

database = database_fixture('sqlite')

_INTEL, _XILINX = '0000:5e:00.0', '0000:d8:00.0'
_USER = '0000:d8:00.1'
_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'
_OF_XILINX = {
    'vendor': 'xilinx',
    'board': 'u250',
    'version': '4.1',
    'shell_id': _INTERFACE,
    'region_uuid': _INTERFACE,
}
# What a bind may do to the disk of a host that refuses it: nothing.
_NOTHING: list[str] = []


@pytest.fixture
def shop(real_glance: RealGlance) -> Shop:
    return Shop(client(real_glance.endpoint))


@pytest.fixture
def intel(
    database: Database, remote: CountedRemote, shop: Shop, tmp_path: Path
) -> FpgaSite:
    return FpgaSite(database, remote, tmp_path, 'Intel FPGA', shop)


@pytest.fixture
def xilinx(
    database: Database, remote: CountedRemote, shop: Shop, tmp_path: Path
) -> FpgaSite:
    return FpgaSite(database, remote, tmp_path, 'Xilinx FPGA', shop)


@pytest.mark.parametrize('cards', LOADING)
def test_the_hosts_come_to_placement_as_expected(
    cards: str, database: Database, remote: CountedRemote, shop: Shop, tmp_path: Path
) -> None:
    site = FpgaSite(database, remote, tmp_path, cards, shop)
    for fields in site.kernel.built.expect['devices']:
        traits, inventories = site.shown(fields['pci'])
        expected = {'FPGA': (1, 0)} if fields['total'] else {}
        assert inventories == expected
        if 'traits' in fields:
            assert traits == {each.lstrip('+') for each in fields['traits']}
        if 'handles' in fields:
            assert given(site, fields['pci']) == fields['handles']


def given(site: FpgaSite, address: str) -> list[Any]:
    """Type, number and info of what a server gets, in the form of the fixtures."""
    bound = site.arqs(site.bind(address, {}))
    infos = [json.dumps(dict(arq.attach_handle_info), sort_keys=True) for arq in bound]
    return [bound[0].attach_handle_type, len(bound), infos[0]]


def uploaded(glance: RealGlance, content: bytes, **properties: str) -> str:
    said = {**image().properties, **properties}
    return glance.upload(content, (TAG,), said)


def by_id(uuid: str) -> dict[str, str]:
    return {'accel:bitstream_id': uuid}


def test_a_bind_loads_and_placement_is_told(
    intel: FpgaSite, real_glance: RealGlance
) -> None:
    before, _ = intel.shown(_INTEL)
    assert function_trait(FACTORY) in before
    uuid = uploaded(real_glance, gbs())
    assert intel.state(intel.bind(_INTEL, by_id(uuid))) == 'Bound'
    traits, inventories = intel.shown(_INTEL)
    assert function_trait(OTHER_FUNCTION) in traits
    assert function_trait(FACTORY) not in traits
    assert inventories == {'FPGA': (1, 0)}
    # What the agent reports next says the same, whether or not it looks before.
    intel.tell()
    assert intel.shown(_INTEL)[0] == traits
    intel.report()
    assert intel.shown(_INTEL)[0] == traits


def test_a_release_brings_back_what_was_there_though_glance_is_away(
    intel: FpgaSite, real_glance: RealGlance, shop: Shop
) -> None:
    first = uploaded(real_glance, gbs(function='cd' * 16), function_uuid='cd' * 16)
    region = intel.bind(_INTEL, by_id(first))
    intel.release(region)
    intel.report()
    before, _ = intel.shown(_INTEL)
    # Nobody knew how to go back to the factory's function, so this is what is there.
    assert function_trait('cd' * 16) in before
    instance = intel.bind(_INTEL, by_id(uploaded(real_glance, gbs())))
    assert function_trait(OTHER_FUNCTION) in intel.shown(_INTEL)[0]
    shop.away = True
    intel.release(instance)
    assert intel.shown(_INTEL) == (before, {'FPGA': (1, 0)})
    assert len(intel.kernel.regions.commands) == 3


def test_a_new_agent_knows_what_the_card_of_a_guest_is(
    intel: FpgaSite, real_glance: RealGlance
) -> None:
    first, second = (
        uploaded(real_glance, gbs(function=one), function_uuid=one)
        for one in ('cd' * 16, OTHER_FUNCTION)
    )
    assert_known_to_a_new_agent(intel, _INTEL, _INTEL, [first, second])


def test_a_new_agent_knows_what_the_xilinx_card_of_a_guest_is(
    xilinx: FpgaSite, real_glance: RealGlance
) -> None:
    first, second = (
        uploaded(
            real_glance, xclbin(_INTERFACE, one), **{**_OF_XILINX, 'function_uuid': one}
        )
        for one in ('cd' * 16, OTHER_FUNCTION)
    )
    assert_known_to_a_new_agent(xilinx, _XILINX, _USER, [first, second])


def assert_known_to_a_new_agent(
    site: FpgaSite, card: str, given: str, images: list[str]
) -> None:
    """And, though nobody looks before, the first is there when the guest has gone."""
    site.release(site.bind(card, by_id(images[0])))
    before = site.shown(card)
    instance = site.bind(card, by_id(images[1]))
    bound = site.shown(card)
    site.report()
    with site.guest(given):
        site.start()
        site.report()
        assert site.shown(card) == bound
    site.release(instance)
    assert site.shown(card) == before


def test_what_cannot_be_brought_back_is_reserved_until_somebody_can(
    intel: FpgaSite, real_glance: RealGlance
) -> None:
    first = uploaded(real_glance, gbs(function='cd' * 16), function_uuid='cd' * 16)
    intel.release(intel.bind(_INTEL, by_id(first)))
    instance = intel.bind(_INTEL, by_id(uploaded(real_glance, gbs())))
    intel.kernel.regions.fate = Fate.HALF_LOADED
    intel.release(instance)
    assert intel.arqs(instance) == ()
    assert intel.shown(_INTEL)[1] == {'FPGA': (1, 1)}
    intel.report()
    assert intel.shown(_INTEL)[1] == {'FPGA': (1, 1)}


# --- images that do not do ----------------------------------------------------------

_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    'not tagged': ({'tags': ()}, 'It is not tagged FPGA.'),
    'another board': ({'board': 'u250'}, 'It is for board u250, not'),
    'another vendor': ({'vendor': 'xilinx'}, 'It is for vendor xilinx, not'),
    'another version': ({'version': '2.0'}, 'It is for version 2.0, not 1.1.3.'),
    'another shell': ({'shell_id': 'other'}, 'It needs shell other, not'),
    'another region': ({'region_uuid': 'ab' * 16}, 'It is for region abab'),
    'no uuid': ({'bs-uuid': ''}, 'It lacks bs-uuid.'),
    'no vendor, no board': (
        {'vendor': '', 'board': ''},
        'It lacks vendor, board.',
    ),
    'nothing said': (
        {**dict.fromkeys(image().properties, ''), 'tags': ()},
        'It is not tagged FPGA. It lacks bs-name, bs-uuid, vendor, board, version, '
        'driver_ver, driver_path, function_uuid.',
    ),
    'no function': ({'function_uuid': ''}, 'It lacks function_uuid.'),
    'a path as its name': (
        {'bs-name': '../../etc/passwd'},
        'Its bs-name ../../etc/passwd is not a word',
    ),
    'a path as the name of its image': (
        {'name': '../../etc/passwd'},
        'Its name ../../etc/passwd looks like a path.',
    ),
    'a nested topology': ({'topology': '{"a":' * 50}, 'Its topology: '),
    'a huge topology': ({'topology': '[' + '1,' * 30_000 + '1]'}, 'Its topology: '),
    'too large': ({'content': b'x' * (LARGEST + 1)}, f'more than the {LARGEST}'),
    'no bitstream': ({'content': b'nothing at all'}, 'The file is no GBS.'),
    'of another interface': (
        {'content': gbs(interface='ab' * 16)},
        'It is for interface abab',
    ),
    'of another function': (
        {'content': gbs(function='cd' * 16)},
        'The file holds function cdcd',
    ),
}


@pytest.mark.parametrize('case', _REFUSED)
def test_what_does_not_do_is_refused_and_leaves_nothing(
    case: str, intel: FpgaSite, real_glance: RealGlance
) -> None:
    changes, reason = dict(_REFUSED[case][0]), _REFUSED[case][1]
    tags, name = changes.pop('tags', (TAG,)), changes.pop('name', 'from a test')
    content = changes.pop('content', gbs())
    said = {**image().properties, **changes}
    given = {key: value for key, value in said.items() if value}
    uuid = real_glance.upload(content, tags, given, name)
    assert_refused(intel, by_id(uuid), reason)


def test_what_its_disk_has_damaged_is_refused_and_leaves_nothing(
    intel: FpgaSite, real_glance: RealGlance
) -> None:
    uuid = uploaded(real_glance, gbs())
    real_glance.damage(uuid)
    assert_refused(intel, by_id(uuid), 'came damaged')


def assert_refused(site: FpgaSite, group: dict[str, str], reason: str) -> None:
    before = site.shown(_INTEL)
    instance = site.bind(_INTEL, group)
    assert site.state(instance) == 'BindFailed'
    (arq,) = site.arqs(instance)
    assert reason in str(arq.status_reason)
    assert site.kernel.regions.commands == []
    assert site.shown(_INTEL) == before
    assert not site.kept.exists() or os.listdir(site.kept) == _NOTHING


# --- loads that fail ----------------------------------------------------------------


@pytest.mark.parametrize(
    'fate', [Fate.TIMEOUT, Fate.HALF_LOADED, Fate.WRONG_ID, Fate.VANISHED]
)
def test_a_load_that_fails_closes_the_card_in_placement(
    fate: Fate, intel: FpgaSite, real_glance: RealGlance
) -> None:
    provider = intel.deployable(_INTEL).provider_uuid
    intel.kernel.regions.fate = fate
    uuid = uploaded(real_glance, gbs())
    assert intel.state(intel.bind(_INTEL, by_id(uuid))) == 'BindFailed'
    intel.report()
    shown = intel.placement.inventories(provider).inventories['FPGA']
    assert (shown.total, shown.reserved) == (1, 1)


def test_a_load_that_changed_nothing_closes_nothing(
    intel: FpgaSite, real_glance: RealGlance
) -> None:
    before = intel.shown(_INTEL)
    intel.kernel.regions.fate = Fate.REFUSED
    uuid = uploaded(real_glance, gbs())
    assert intel.state(intel.bind(_INTEL, by_id(uuid))) == 'BindFailed'
    intel.report()
    assert intel.shown(_INTEL) == before


# --- boots --------------------------------------------------------------------------


def test_after_a_boot_a_guest_finds_what_it_had_though_glance_is_away(
    intel: FpgaSite, real_glance: RealGlance, shop: Shop
) -> None:
    instance = intel.bind(_INTEL, by_id(uploaded(real_glance, gbs())))
    bound = intel.shown(_INTEL)
    shop.away = True
    intel.boot()
    assert intel.state(instance) == 'Bound'
    assert intel.shown(_INTEL) == bound
    assert len(intel.kernel.regions.commands) == 2


@pytest.mark.parametrize('trouble', ['damaged', 'half loaded'])
def test_after_a_boot_what_cannot_be_loaded_again_has_failed(
    trouble: str, intel: FpgaSite, real_glance: RealGlance, shop: Shop
) -> None:
    instance = intel.bind(_INTEL, by_id(uploaded(real_glance, gbs())))
    if trouble == 'damaged':
        shop.away = True
        (kept,) = (each for each in intel.kept.iterdir() if 'sha' in each.name)
        kept.chmod(0o600)
        kept.write_bytes(b'other bytes')
    else:
        intel.kernel.regions.fate = Fate.HALF_LOADED
    intel.boot()
    assert intel.state(instance) == 'BindFailed'
    (arq,) = intel.arqs(instance)
    expected = 'Glance' if trouble == 'damaged' else 'reconfig CRC error'
    assert expected in str(arq.status_reason)


# --- Xilinx -------------------------------------------------------------------------

_PAIR = {'trait:CUSTOM_FPGA_XILINX': 'required'}


def test_both_requests_of_a_xilinx_card_are_bound_by_one_load(
    xilinx: FpgaSite, real_glance: RealGlance
) -> None:
    content = xclbin(_INTERFACE, OTHER_FUNCTION)
    uuid = uploaded(real_glance, content, **_OF_XILINX)
    instance = xilinx.bind(_XILINX, {**_PAIR, **by_id(uuid)})
    assert xilinx.state(instance) == 'Bound'
    first, second = xilinx.arqs(instance)
    assert first.attach_handle_info['function'] == '1'
    assert (second.attach_handle_type, second.attach_handle_info) == (None, {})
    assert len(xilinx.kernel.regions.commands) == 1
    xilinx.release(instance)
    assert xilinx.arqs(instance) == ()
    assert xilinx.state(xilinx.bind(_XILINX, _PAIR)) == 'Bound'


def test_the_management_function_is_no_servers(xilinx: FpgaSite) -> None:
    bound = xilinx.arqs(xilinx.bind(_XILINX, _PAIR))
    infos = [arq.attach_handle_info for arq in bound if arq.attach_handle_info]
    assert [info['function'] for info in infos] == ['1']
