# SPDX-License-Identifier: Apache-2.0
"""Tests of the devices that a configuration of Nova claims."""

import pytest

from cyborg_lite.model.ownership.nova_config import (
    NovaConfig,
    NovaPciFunction,
    parse_nova_config,
)

T4 = NovaPciFunction('0000:3b:00.0', '10de', '1eb8')
VF = NovaPciFunction(
    '0000:3b:00.4', '15b3', '101e', '0000:3b:00.0', interfaces=frozenset({'eth4', 'pf'})
)
VGPU = NovaPciFunction(
    '0000:3b:00.0', '10de', '1eb8', mdev_types=frozenset({'nvidia-222'})
)


def parse_device_spec(value: str) -> NovaConfig:
    return parse_nova_config([f'[pci]\ndevice_spec = {value}\n'])


def is_claimed_by(config: NovaConfig, *functions: NovaPciFunction) -> bool:
    return config.find_claim(functions) is not None


@pytest.mark.parametrize(
    'value',
    [
        '{"vendor_id": "10de", "product_id": "1eb8"}',
        '{"vendor_id": "10DE"}',
        '{"vendor_id": "*", "address": "0000:3b:00.0"}',
        '{"address": "3B:00.0"}',
        '{"address": "*:3b:00.*", "physical_network": "physnet1"}',
        '{"address": ":3b:."}',
        '{"address": "0000:3b:00"}',
        '{"address": {"domain": ".*", "bus": "3[a-c]", "function": "[0-2]"}}',
        '{}',
        '[{"vendor_id": "8086"}, {"vendor_id": "10de"}]',
        '\'{"vendor_id": "10de"}\'',
    ],
)
def test_device_spec_claims_function(value: str) -> None:
    assert is_claimed_by(parse_device_spec(value), T4)


@pytest.mark.parametrize(
    'value',
    [
        '{"vendor_id": "8086"}',
        '{"vendor_id": "10de", "product_id": "1eb9"}',
        '{"address": "0000:5e:00.0"}',
        '{"address": "*:3b:00.1"}',
        '{"address": {"bus": "3c"}}',
        '{"devname": "eth0"}',
        '[]',
    ],
)
def test_device_spec_does_not_claim_function(value: str) -> None:
    assert not is_claimed_by(parse_device_spec(value), T4)


@pytest.mark.parametrize(
    ('value', 'is_claimed'),
    [
        ('{"address": "0000:3b:00.4"}', True),
        ('{"address": "0000:3b:00.0"}', True),
        ('{"address": "*:3b:00.0"}', False),
        ('{"address": "0000:3b:00.0", "product_id": "101d"}', False),
        ('{"devname": "eth4"}', True),
        ('{"devname": "pf"}', True),
        ('{"devname": "eth5"}', False),
    ],
)
def test_device_spec_physical_function_claims_virtual_functions(
    value: str, is_claimed: bool
) -> None:
    assert is_claimed_by(parse_device_spec(value), VF) is is_claimed


def test_parse_nova_config_merges_entries_of_files() -> None:
    first = (
        '[pci]\ndevice_spec = {"vendor_id": "8086"}\ndevice_spec = {"address": "1:"}'
    )
    second = '# [pci]\n[pci]\n;x\ndevice_spec = { "vendor_id":\n   "10de" }\nalias = {}'
    config = parse_nova_config([first, second])
    assert len(config.claims) == 3
    claim = config.find_claim([VF, T4])
    assert claim is not None
    assert claim.source == '[pci] device_spec = { "vendor_id": "10de" }'


def test_parse_nova_config_alias_claims_nothing() -> None:
    """An alias only names devices for flavors."""
    assert (
        parse_nova_config(['[pci]\nalias = {"vendor_id": "10de", "name": "a"}'])
        == NovaConfig()
    )


@pytest.mark.parametrize(
    'value',
    [
        '{"vendor_id": 10}',
        '{"vendor_id": "gpu"}',
        '{"address": "0:0:0:0.0"}',
        '{"address": 7}',
        '{"address": "0000:3b:zz.0"}',
        '{"address": "0000:3b:00.x"}',
        '{"devname": ["eth0"]}',
        '{"address": {"bus": "["}}',
        '{"address": {"bus": 3}}',
        '7',
        '{',
        '',
    ],
)
def test_parse_nova_config_invalid_entry_is_listed_and_skipped(value: str) -> None:
    good = '\ndevice_spec = {"vendor_id": "10de"}'
    config = parse_device_spec(f'{value}{good}')
    assert config.mistakes == (f'[pci] device_spec = {value}',)
    assert is_claimed_by(config, T4)


@pytest.mark.parametrize('prefix', ['mdev_', 'vgpu_'])
def test_mdev_type_with_addresses_claims_listed_cards(prefix: str) -> None:
    text = (
        '[devices]\nenabled_mdev_types = nvidia-221, nvidia-222\n'
        f'[{prefix}nvidia-221]\ndevice_addresses = 0000:84:00.0\n'
        f'[{prefix}nvidia-222]\ndevice_addresses = '
    )
    assert is_claimed_by(parse_nova_config([f'{text}0000:85:00.0,0000:3B:00.0']), VGPU)
    assert not is_claimed_by(parse_nova_config([f'{text}0000:85:00.0']), VGPU)


def test_mdev_types_without_addresses_claim_first_type() -> None:
    text = '[devices]\nenabled_mdev_types = nvidia-221,nvidia-222'
    assert not is_claimed_by(parse_nova_config([text]), VGPU)


def test_mdev_types_last_entry_overrides() -> None:
    first = '[devices]\nenabled_mdev_types = nvidia-222'
    assert not is_claimed_by(
        parse_nova_config([first, '[devices]\nenabled_mdev_types = nvidia-1']), VGPU
    )


def test_parse_nova_config_empty_file_claims_nothing() -> None:
    assert parse_nova_config(['', '\n\n# x\n']) == NovaConfig()
