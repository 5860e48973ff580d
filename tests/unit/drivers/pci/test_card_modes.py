# SPDX-License-Identifier: Apache-2.0
"""Tests of modes that the operator declares for cards."""

from dataclasses import replace

import pytest

from cyborg_lite.drivers.pci.card_modes import DeclaredModes
from cyborg_lite.errors.daemons import ConfigurationError
from tests.builders.reports import card

_CARD = replace(card(0x3B), hardware_id='GPU-1')


@pytest.mark.parametrize(
    'rule',
    [
        '00000000:3B:00.0 = fast',
        '10DE:1eb8 = fast',
        'tesla t4 = fast',
        'gpu-1 = fast',
        'Node-1/10de:* = fast',
        '* = fast',
    ],
)
def test_find_matches_names_of_card(rule: str) -> None:
    rules = ['node-2/* = slow', '10de:26b9 = slow', rule, '* = slow']
    assert DeclaredModes({'modes': rules}, 'node-1').find(_CARD) == 'fast'


def test_find_without_match_returns_none() -> None:
    assert DeclaredModes({'modes': ['node-2/* = slow']}, 'node-1').find(_CARD) is None
    assert DeclaredModes({}, 'node-1').find(_CARD) is None


def test_invalid_mode_raises() -> None:
    with pytest.raises(ConfigurationError, match='no valid mode'):
        DeclaredModes({'modes': ['* = a/b']}, 'node-1')
