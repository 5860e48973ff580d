# SPDX-License-Identifier: Apache-2.0
"""Tests of modes that the operator declares for cards."""

from dataclasses import replace

import pytest

from cyborg_lite.drivers.pci.card_modes import DeclaredModes
from cyborg_lite.errors.daemons import ConfigurationError
from tests.builders.reports import card

_CARD = replace(card(0x3B), hardware_id='GPU-1')


def test_find_without_match_returns_none() -> None:
    assert DeclaredModes({'modes': ['node-2/* = slow']}, 'node-1').find(_CARD) is None
    assert DeclaredModes({}, 'node-1').find(_CARD) is None


def test_invalid_mode_raises() -> None:
    with pytest.raises(ConfigurationError, match='no valid mode'):
        DeclaredModes({'modes': ['* = a/b']}, 'node-1')
