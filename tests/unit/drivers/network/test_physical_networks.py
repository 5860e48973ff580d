# SPDX-License-Identifier: Apache-2.0
"""Tests of the names that the operator assigns to network interfaces."""

from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.network import physical_networks
from cyborg_lite.drivers.network.physical_networks import (
    PHYSICAL_NETWORKS,
    parse_mappings,
    read_cyborg_mappings,
)


def test_parse_mappings_lists_names_by_interface() -> None:
    texts = ['physnet1:ens1f0|ens1f1', 'physnet2:ens1f1']
    assert parse_mappings(texts) == {
        'ens1f0': ['physnet1'],
        'ens1f1': ['physnet1', 'physnet2'],
    }


@pytest.mark.parametrize('address', ['0000:5e:00.0', '0000:5E:00.0'])
def test_parse_mappings_pci_address_is_normalized(address: str) -> None:
    assert parse_mappings([f'physnet2:{address}']) == {'0000:5e:00.0': ['physnet2']}


def test_parse_mappings_keeps_order_of_texts() -> None:
    assert parse_mappings(['b:ens1', 'a:ens1'])['ens1'] == ['b', 'a']


@pytest.mark.parametrize('text', ['physnet1', ':ens1', 'physnet1:', 'physnet1:a||b'])
def test_option_malformed_pair_is_refused(text: str) -> None:
    conf = cfg.ConfigOpts()
    conf.register_opt(PHYSICAL_NETWORKS)
    with pytest.raises(ValueError, match='regex'):
        conf.set_override(PHYSICAL_NETWORKS.dest, [text])


def test_read_cyborg_mappings_joins_named_sections() -> None:
    # Any: the value of each option has its own type.
    sections: dict[str, dict[str, Any]] = {
        'nic_devices': {'enabled_nic_types': ['x710_static', 'cx5_static']},
        'x710_static': {
            'physical_device_mappings': ['physnet1:ens1f0'],
            'function_device_mappings': ['ovs-offload:ens1f0'],
        },
        'cx5_static': {
            'physical_device_mappings': ['physnet2:ens2f0'],
            'function_device_mappings': [],
        },
        'unused': {'physical_device_mappings': ['physnet9:ens9']},
    }
    assert read_cyborg_mappings(lambda name, _: sections[name]) == {
        'cyborg_networks': ['physnet1:ens1f0', 'physnet2:ens2f0'],
        'cyborg_functions': ['ovs-offload:ens1f0'],
    }


def test_read_cyborg_mappings_without_nic_types_is_empty() -> None:
    values = read_cyborg_mappings(lambda name, _: {'enabled_nic_types': []})
    assert not any(values.values())
    assert physical_networks.parse_mappings(values['cyborg_networks']) == {}
