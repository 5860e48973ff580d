# SPDX-License-Identifier: Apache-2.0
"""Tests of handles of a moved card, matched by their distance from the card address."""

from cyborg_lite.model.inventory.identities import find_former_keys

OLD, NEW = '0000:3b:00.0', '0000:5e:00.0'


def handles(address: str, *tails: str, missing: bool = False) -> dict[str, bool]:
    return {f'{address[:8]}{tail}': missing for tail in tails}


def test_former_keys_match_equal_distance() -> None:
    old = handles(OLD, '00.4', '00.5', '02.0')
    new = handles(NEW, '00.5', '02.0', '00.4')
    assert find_former_keys(old, OLD, new, NEW) == dict(
        zip(
            [f'0000:5e:{tail}' for tail in ('00.5', '02.0', '00.4')],
            [f'0000:3b:{tail}' for tail in ('00.5', '02.0', '00.4')],
            strict=True,
        )
    )


def test_former_keys_single_remaining_handle_matches_distance() -> None:
    """The database keeps the claimed handle of a missing card."""
    old = handles(OLD, '00.6', missing=True)
    new = handles(NEW, '00.4', '00.5', '00.6')
    assert find_former_keys(old, OLD, new, NEW) == {'0000:5e:00.6': '0000:3b:00.6'}


def test_former_keys_missing_handle_without_match_is_skipped() -> None:
    old = handles(OLD, '00.7', missing=True)
    assert find_former_keys(old, OLD, handles(NEW, '00.4'), NEW) == {}


def test_former_keys_distance_crosses_buses() -> None:
    old = {'0000:3c:1f.7': False}
    assert find_former_keys(old, OLD, {'0000:5f:1f.7'}, NEW) == {
        '0000:5f:1f.7': '0000:3c:1f.7'
    }


def test_former_keys_compare_types_and_numbers() -> None:
    old = {f'{OLD}/nvidia-231/{n}': False for n in (1, 10, 2)}
    new = {f'{NEW}/nvidia-231/{n}' for n in (2, 1, 10)}
    former_keys = find_former_keys(old, OLD, new, NEW)
    assert former_keys == {key: key.replace('5e', '3b') for key in new}


def test_former_keys_without_equal_distance_match_in_order() -> None:
    old = handles(OLD, '00.4', '00.5')
    new = handles(NEW, '01.1', '01.0')
    assert find_former_keys(old, OLD, new, NEW) == {
        '0000:5e:01.0': '0000:3b:00.4',
        '0000:5e:01.1': '0000:3b:00.5',
    }


def test_former_keys_without_addresses_are_empty() -> None:
    assert find_former_keys({'a': False, 'b': True}, 'x', {'a', 'c'}, 'y') == {}


def test_former_keys_of_swapped_cards_stay_separate() -> None:
    """The new key of each card is the old key of the other card."""
    assert find_former_keys({OLD: False}, OLD, {NEW}, NEW) == {NEW: OLD}
    assert find_former_keys({NEW: False}, NEW, {OLD}, OLD) == {OLD: NEW}
