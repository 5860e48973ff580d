# SPDX-License-Identifier: Apache-2.0
"""What the operator wants of each card, by the first rule that fits it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.vgpu_rules import Rules, of_cyborg, parse
from cyborg_lite.exceptions import ConfigurationError

_CARD = ('0000:af:00.0', 'GPU-0d1b2c3d-5a5a', '10de:1eb8')


@pytest.mark.parametrize(
    ('rules', 'wanted'),
    [
        ([], ()),
        (['0000:af:00.0=nvidia-231'], ('nvidia-231',)),
        (['0000:AF:00.0 = T4-2Q'], ('T4-2Q',)),
        (['00000000:AF:00.0=T4-2Q'], ('T4-2Q',)),  # as nvidia-smi spells it
        (['0000:3b:00.0=nvidia-231'], ()),
        (['0000:af:*=nvidia-231'], ('nvidia-231',)),
        (['gpu-0d1b*=nvidia-231'], ('nvidia-231',)),
        (['10de:1eb8=nvidia-231'], ('nvidia-231',)),
        (['0000:af:00.0=whole', '*=nvidia-231'], ()),
        (['*=nvidia-231', '0000:af:00.0=whole'], ('nvidia-231',)),
        (['*=nvidia-474 + nvidia-476'], ('nvidia-474', 'nvidia-476')),
        (['*=NVIDIA RTX Pro 6000 Blackwell DC-3Q'], ('NVIDIA RTX Pro 6000 '
                                                     'Blackwell DC-3Q',)),
    ],
)  # fmt: skip
def test_the_first_rule_that_fits_decides(
    rules: list[str], wanted: tuple[str, ...]
) -> None:
    assert Rules(parse(rules)).wanted(*_CARD) == wanted


@pytest.mark.parametrize(
    'rule',
    [
        '0000:zz:00.0=nvidia-231',  # a slip of the finger would leave the card whole
        'Tesla=nvidia-231',
        '10de:1eb=nvidia-231',
        '*=+',
        '*=nvidia-474+',
        '*=whole+nvidia-231',
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(rule)):
        parse([rule])


# Any: as options are.
def _cyborg(**sections: Mapping[str, Any]) -> tuple[str, ...]:
    def section(group: str, options: Sequence[cfg.Opt]) -> Mapping[str, Any]:
        return {
            each.dest: sections.get(group, {}).get(each.dest, []) for each in options
        }

    return of_cyborg(section)


def test_without_sections_of_cyborg_there_are_no_rules() -> None:
    assert _cyborg() == ()


def test_one_type_without_addresses_is_for_all_cards() -> None:
    assert _cyborg(gpu_devices={'enabled_vgpu_types': ['nvidia-35']}) == (
        '*=nvidia-35',
    )


def test_the_first_type_is_for_all_where_one_of_several_has_no_address() -> None:
    found = _cyborg(
        gpu_devices={'enabled_vgpu_types': ['nvidia-35', 'nvidia-36']},
        **{'vgpu_nvidia-35': {'device_addresses': ['0000:84:00.0']}},
    )
    assert found == ('*=nvidia-35',)


@pytest.mark.parametrize('address', ['0000:84:00.0', 'ens1f0'])
def test_a_card_of_two_types_or_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match=address):
        _cyborg(
            gpu_devices={'enabled_vgpu_types': ['nvidia-35', 'nvidia-36']},
            **{
                'vgpu_nvidia-35': {'device_addresses': ['0000:84:00.0']},
                'vgpu_nvidia-36': {'device_addresses': [address]},
            },
        )
