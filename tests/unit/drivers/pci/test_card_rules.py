# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules that assign vGPU types to cards."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.pci.card_rules import (
    VGPU_CLASS,
    VGPU_TYPES,
    parse_rules,
    read_cyborg_rules,
)
from cyborg_lite.errors.daemons import ConfigurationError


@pytest.mark.parametrize(
    'rule',
    [
        '0000:zz:00.0=nvidia-231',  # a typing error must not leave the card whole
        'Tesla=nvidia-231',
        '10de:1eb=nvidia-231',
        '*=+',
        '*=nvidia-474+',
        '*=whole+nvidia-231',
    ],
)
def test_parse_invalid_rule_raises(rule: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(rule)):
        parse_rules([rule])


@pytest.mark.parametrize('text', ['10de:1eb8', '=T4-2Q', '*=', '*=T4-2Q=', ' =T4-2Q'])
def test_option_malformed_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match='regex'):
        VGPU_TYPES.type([text])
    assert VGPU_TYPES.type(['* = T4-2Q']) == ['* = T4-2Q']


# Any: options have various types.
def _cyborg(**sections: Mapping[str, Any]) -> tuple[str, ...]:
    def section(group: str, options: Sequence[cfg.Opt]) -> Mapping[str, Any]:
        return {
            option.dest: sections.get(group, {}).get(option.dest, [])
            for option in options
        }

    return read_cyborg_rules(section)


def test_cyborg_rules_no_section_returns_none() -> None:
    assert _cyborg() == ()


def test_cyborg_rules_single_type_matches_all_cards() -> None:
    assert _cyborg(gpu_devices={'enabled_vgpu_types': ['nvidia-35']}) == (
        '*=nvidia-35',
    )


def test_cyborg_rules_type_without_address_uses_first_type() -> None:
    rules = _cyborg(
        gpu_devices={'enabled_vgpu_types': ['nvidia-35', 'nvidia-36']},
        **{'vgpu_nvidia-35': {'device_addresses': ['0000:84:00.0']}},
    )
    assert rules == ('*=nvidia-35',)


@pytest.mark.parametrize('address', ['0000:84:00.0', 'ens1f0'])
def test_cyborg_rules_ambiguous_or_invalid_address_raises(address: str) -> None:
    with pytest.raises(ConfigurationError, match=address):
        _cyborg(
            gpu_devices={'enabled_vgpu_types': ['nvidia-35', 'nvidia-36']},
            **{
                'vgpu_nvidia-35': {'device_addresses': ['0000:84:00.0']},
                'vgpu_nvidia-36': {'device_addresses': [address]},
            },
        )


@pytest.mark.parametrize('value', ['PGPU', 'custom_x', 'CUSTOM_', 'CUSTOM_a-b'])
def test_vgpu_class_invalid_value_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"doesn't match|not"):
        VGPU_CLASS.type(value)
    for valid in ('CUSTOM_CYBORG_VGPU', 'VGPU'):
        assert VGPU_CLASS.type(valid) == valid
