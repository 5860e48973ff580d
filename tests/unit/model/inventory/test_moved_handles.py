# SPDX-License-Identifier: Apache-2.0
"""Tests of handles of a moved card, matched by their distance from the card address."""

import pytest

from cyborg_lite.model.inventory.identities import find_former_keys

OLD, NEW = '0000:3b:00.0', '0000:5e:00.0'


@pytest.mark.parametrize(
    ('old', 'new', 'former'),
    [
        # Functions at the same distance from the card, also on a further bus.
        (
            ['3b:00.4', '3b:00.5', '3b:02.0'],
            ['5e:00.5', '5e:02.0', '5e:00.4'],
            {'5e:00.4': '3b:00.4', '5e:00.5': '3b:00.5', '5e:02.0': '3b:02.0'},
        ),
        (['3c:1f.7'], ['5f:1f.7'], {'5f:1f.7': '3c:1f.7'}),
        # Types and numbers after the address.
        (
            ['3b:00.0/nvidia-231/1', '3b:00.0/nvidia-231/10', '3b:00.0/nvidia-231/2'],
            ['5e:00.0/nvidia-231/2', '5e:00.0/nvidia-231/10'],
            {
                '5e:00.0/nvidia-231/2': '3b:00.0/nvidia-231/2',
                '5e:00.0/nvidia-231/10': '3b:00.0/nvidia-231/10',
            },
        ),
        # Without an equal distance the order counts, and that of numbers.
        (
            ['3b:00.4', '3b:00.5'],
            ['5e:01.1', '5e:01.0'],
            {'5e:01.0': '3b:00.4', '5e:01.1': '3b:00.5'},
        ),
        (
            ['3b:00.4/9', '3b:00.4/10'],
            ['5e:01.0/10', '5e:01.0/9'],
            {'5e:01.0/9': '3b:00.4/9', '5e:01.0/10': '3b:00.4/10'},
        ),
        # An unchanged key has no former one.
        (['3b:00.4', '3b:00.5'], ['3b:00.3', '3b:00.4', '3b:00.5'], {}),
        # The new key of each swapped card is the old key of the other card.
        (['3b:00.0'], ['5e:00.0'], {'5e:00.0': '3b:00.0'}),
    ],
)
def test_former_keys_match_distance_then_order(
    old: list[str], new: list[str], former: dict[str, str]
) -> None:
    result = find_former_keys(
        {f'0000:{key}': False for key in old}, OLD, [f'0000:{key}' for key in new], NEW
    )
    assert result == {f'0000:{k}': f'0000:{v}' for k, v in former.items()}


@pytest.mark.parametrize(
    ('new', 'former'),
    [
        (['0000:5e:00.4', '0000:5e:00.6'], {'0000:5e:00.6': '0000:3b:00.6'}),
        (['0000:5e:00.4'], {}),
    ],
)
def test_former_keys_missing_handle_matches_distance_only(
    new: list[str], former: dict[str, str]
) -> None:
    """The database keeps the claimed handle of a missing card."""
    assert find_former_keys({'0000:3b:00.6': True}, OLD, new, NEW) == former


def test_former_keys_without_addresses_are_empty() -> None:
    assert find_former_keys({'a': False, 'b': True}, 'x', {'a', 'c'}, 'y') == {}
