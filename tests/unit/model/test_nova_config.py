# SPDX-License-Identifier: Apache-2.0
"""What an operator wrote for Nova, and whether a device of ours is meant by it."""

import pytest

from cyborg_lite.model.nova_config import Function, NovaConfig, read

T4 = Function('0000:3b:00.0', '10de', '1eb8')
VF = Function(
    '0000:3b:00.4', '15b3', '101e', '0000:3b:00.0', interfaces=frozenset({'eth4', 'pf'})
)
VGPU = Function('0000:3b:00.0', '10de', '1eb8', mdev_types=frozenset({'nvidia-222'}))


def spec(value: str) -> NovaConfig:
    return read([f'[pci]\ndevice_spec = {value}\n'])


def claims(config: NovaConfig, *functions: Function) -> bool:
    return config.claim(functions) is not None


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
def test_a_function_that_is_meant(value: str) -> None:
    assert claims(spec(value), T4)


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
def test_a_function_that_is_not_meant(value: str) -> None:
    assert not claims(spec(value), T4)


@pytest.mark.parametrize(
    ('value', 'meant'),
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
def test_a_physical_function_stands_for_its_virtual_ones(
    value: str, meant: bool
) -> None:
    assert claims(spec(value), VF) is meant


@pytest.mark.parametrize(
    'text',
    [
        '[pci]\npassthrough_whitelist = {"vendor_id": "10de"}',
        'pci_passthrough_whitelist = [{"vendor_id": "10de"}]',
        '[DEFAULT]\npci_passthrough_whitelist: {"vendor_id": "10de"}',
    ],
)
def test_older_names_are_read_too(text: str) -> None:
    assert claims(read([text]), T4)


def test_many_entries_in_many_files_all_count() -> None:
    first = (
        '[pci]\ndevice_spec = {"vendor_id": "8086"}\ndevice_spec = {"address": "1:"}'
    )
    second = '# [pci]\n[pci]\n;x\ndevice_spec = { "vendor_id":\n   "10de" }\nalias = {}'
    config = read([first, second])
    assert len(config.claims) == 3
    found = config.claim([VF, T4])
    assert found is not None
    assert found.source == '[pci] device_spec = { "vendor_id": "10de" }'


def test_an_alias_gives_nothing_to_nova() -> None:
    """It only names what a flavor may ask for."""
    assert read(['[pci]\nalias = {"vendor_id": "10de", "name": "a"}']) == NovaConfig()


@pytest.mark.parametrize(
    'value',
    [
        '{"vendor_id": 10}',
        '{"vendor_id": "gpu"}',
        '{"address": "0:0:0:0.0"}',
        '{"address": 7}',
        '{"address": {"bus": "["}}',
        '{"address": {"bus": 3}}',
        '7',
        '{',
        '',
    ],
)
def test_an_entry_without_sense_is_told_and_the_others_count(value: str) -> None:
    good = '\ndevice_spec = {"vendor_id": "10de"}'
    config = spec(f'{value}{good}')
    assert config.mistakes == (f'[pci] device_spec = {value}',)
    assert claims(config, T4)


@pytest.mark.parametrize('option', ['enabled_mdev_types', 'enabled_vgpu_types'])
def test_a_type_of_vgpu_claims_the_cards_that_can_carry_it(option: str) -> None:
    config = read([f'[devices]\n{option} = nvidia-222'])
    assert claims(config, VGPU)
    assert not claims(config, T4)
    assert not claims(read([f'[devices]\n{option} = nvidia-223']), VGPU)
    assert not claims(
        read(
            [f'[devices]\n{option} ='],
        ),
        VGPU,
    )


@pytest.mark.parametrize('prefix', ['mdev_', 'vgpu_'])
def test_a_type_with_addresses_claims_those_cards_alone(prefix: str) -> None:
    text = (
        '[devices]\nenabled_mdev_types = nvidia-221, nvidia-222\n'
        f'[{prefix}nvidia-221]\ndevice_addresses = 0000:84:00.0\n'
        f'[{prefix}nvidia-222]\ndevice_addresses = '
    )
    assert claims(read([f'{text}0000:85:00.0,0000:3B:00.0']), VGPU)
    assert not claims(read([f'{text}0000:85:00.0']), VGPU)


def test_of_types_without_addresses_nova_makes_the_first_alone() -> None:
    both = '[devices]\nenabled_mdev_types = nvidia-221,nvidia-222'
    assert not claims(read([both]), VGPU)


def test_the_last_list_of_types_counts() -> None:
    first = '[devices]\nenabled_mdev_types = nvidia-222'
    assert not claims(read([first, '[devices]\nenabled_mdev_types = nvidia-1']), VGPU)


def test_an_empty_file_claims_nothing() -> None:
    assert read(['', '\n\n# x\n']) == NovaConfig()
