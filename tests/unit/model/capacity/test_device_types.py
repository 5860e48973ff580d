# SPDX-License-Identifier: Apache-2.0
"""Tests of the types of devices: words, profiles and free units."""

from dataclasses import replace

import pytest

from cyborg_lite.model.capacity.device_types import DeviceType, summarize_types
from cyborg_lite.model.capacity.explanations import ProviderCapacity, ReasonCode

SLICE = DeviceType('GPU', '10de', 'A100', 'CUSTOM_MIG', '2g.20gb', 20480)
CARD = DeviceType('GPU', '10de', 'Tesla T4', 'PGPU')


def offer(name: str, item: DeviceType, free: int) -> ProviderCapacity:
    traits = frozenset({'CUSTOM_A'})
    return ProviderCapacity(
        name, name, 'compute-1', item.resource_class, traits, 8, free, free
    )


@pytest.mark.parametrize(
    ('item', 'text'),
    [
        (SLICE, 'one 20 GB slice of an A100'),
        (replace(SLICE, model='H100'), 'one 20 GB slice of an H100'),
        (replace(SLICE, model='Tesla T4'), 'one 20 GB slice of a Tesla T4'),
        (CARD, 'one Tesla T4'),
        (replace(CARD, memory_mib=16384), 'one 16 GB Tesla T4'),
        (replace(CARD, model=''), 'one GPU'),
    ],
)
def test_description_has_words(item: DeviceType, text: str) -> None:
    assert item.description == text


def test_types_sum_free_units_of_open_providers() -> None:
    providers = [
        offer('a', SLICE, 2),
        offer('b', SLICE, 3),
        replace(offer('c', SLICE, 5), closed=ReasonCode.MAINTENANCE),
        replace(offer('d', SLICE, 5), free_handles=1),
        offer('e', CARD, 0),
        offer('unknown', CARD, 1),
    ]
    types = {**dict.fromkeys('abcd', SLICE), 'e': CARD}
    summary = summarize_types(types, providers, [])
    assert [(item.model, item.free_units) for item in summary] == [
        ('A100', 6),
        ('Tesla T4', 0),
    ]


def test_types_name_profiles_that_units_can_serve() -> None:
    groups = [
        ('two', {'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'}),
        ('nine', {'resources:PGPU': '9'}),
        ('without', {'resources:PGPU': '1', 'trait:CUSTOM_A': 'forbidden'}),
        ('other', {'resources:PGPU': '1', 'trait:CUSTOM_B': 'required'}),
        ('both', {'resources:PGPU': '1', 'resources:VGPU': '1'}),
        ('slice', {'resources:CUSTOM_MIG': '1'}),
    ]
    (item,) = summarize_types({'e': CARD}, [offer('e', CARD, 1)], groups)
    assert item.device_profiles == ('two',)
