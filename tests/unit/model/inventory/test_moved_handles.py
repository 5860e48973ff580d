# SPDX-License-Identifier: Apache-2.0
"""Tests of handles of a moved card, matched by their distance from the card address."""

from cyborg_lite.model.inventory.moved_handles import find_former_keys

OLD, NEW = '0000:3b:00.0', '0000:5e:00.0'


def handles(address: str, *tails: str, missing: bool = False) -> dict[str, bool]:
    return {f'{address[:8]}{tail}': missing for tail in tails}


def test_former_keys_distance_crosses_buses() -> None:
    old = {'0000:3c:1f.7': False}
    assert find_former_keys(old, OLD, {'0000:5f:1f.7'}, NEW) == {
        '0000:5f:1f.7': '0000:3c:1f.7'
    }


def test_former_keys_without_equal_distance_match_in_order() -> None:
    old = handles(OLD, '00.4', '00.5')
    new = handles(NEW, '01.1', '01.0')
    assert find_former_keys(old, OLD, new, NEW) == {
        '0000:5e:01.0': '0000:3b:00.4',
        '0000:5e:01.1': '0000:3b:00.5',
    }


def test_former_keys_without_addresses_are_empty() -> None:
    assert find_former_keys({'a': False, 'b': True}, 'x', {'a', 'c'}, 'y') == {}
