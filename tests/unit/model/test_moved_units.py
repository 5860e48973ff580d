# SPDX-License-Identifier: Apache-2.0
"""Functions of a card are known again by how far they are from its first."""

from cyborg_lite.model.moved_units import former_keys

OLD, NEW = '0000:3b:00.0', '0000:5e:00.0'


def units(address: str, *tails: str, missing: bool = False) -> dict[str, bool]:
    return {f'{address[:8]}{tail}': missing for tail in tails}


def test_a_unit_is_found_again_at_its_distance() -> None:
    old = units(OLD, '00.4', '00.5', '02.0')
    new = units(NEW, '00.5', '02.0', '00.4')
    assert former_keys(old, OLD, new, NEW) == dict(
        zip(
            [f'0000:5e:{tail}' for tail in ('00.5', '02.0', '00.4')],
            [f'0000:3b:{tail}' for tail in ('00.5', '02.0', '00.4')],
            strict=True,
        )
    )


def test_the_one_that_was_kept_alone_is_not_taken_for_the_first() -> None:
    """Of a card that was lost, only what a server held is still known."""
    old = units(OLD, '00.6', missing=True)
    new = units(NEW, '00.4', '00.5', '00.6')
    assert former_keys(old, OLD, new, NEW) == {'0000:5e:00.6': '0000:3b:00.6'}


def test_what_is_missing_is_nobody_elses() -> None:
    old = units(OLD, '00.7', missing=True)
    assert former_keys(old, OLD, units(NEW, '00.4'), NEW) == {}


def test_distances_may_cross_buses() -> None:
    old = {'0000:3c:1f.7': False}
    assert former_keys(old, OLD, {'0000:5f:1f.7'}, NEW) == {
        '0000:5f:1f.7': '0000:3c:1f.7'
    }


def test_numbers_and_types_behind_an_address_count() -> None:
    old = {f'{OLD}/nvidia-231/{n}': False for n in (1, 10, 2)}
    new = {f'{NEW}/nvidia-231/{n}' for n in (2, 1, 10)}
    found = former_keys(old, OLD, new, NEW)
    assert found == {key: key.replace('5e', '3b') for key in new}


def test_what_fits_no_distance_goes_by_its_order() -> None:
    old = units(OLD, '00.4', '00.5')
    new = units(NEW, '01.1', '01.0')
    assert former_keys(old, OLD, new, NEW) == {
        '0000:5e:01.0': '0000:3b:00.4',
        '0000:5e:01.1': '0000:3b:00.5',
    }


def test_keys_that_are_no_addresses_stay_what_they_are() -> None:
    assert former_keys({'a': False, 'b': True}, 'x', {'a', 'c'}, 'y') == {}


def test_cards_that_change_places_keep_their_own() -> None:
    """The new key of one is the old key of the other; each looks at its own."""
    assert former_keys({OLD: False}, OLD, {NEW}, NEW) == {NEW: OLD}
    assert former_keys({NEW: False}, NEW, {OLD}, OLD) == {OLD: NEW}
