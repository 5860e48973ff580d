# SPDX-License-Identifier: Apache-2.0
"""Tests of the names of deployables in facts."""

import pytest

from cyborg_lite.model.inventory.facts import deployable_name, name_suffix


@pytest.mark.parametrize(
    ('name', 'suffix'),
    [
        ('h_01', ''),
        ('h_01_region0', '_region0'),
        ('h_01_region0_1', '_region0_1'),
        ('h_011', 'h_011'),
        ('h_odd', 'h_odd'),
    ],
)
def test_name_suffix_and_deployable_name_are_inverse(name: str, suffix: str) -> None:
    assert name_suffix(name, 'h_01') == suffix
    assert deployable_name(suffix, 'h_01') == name
