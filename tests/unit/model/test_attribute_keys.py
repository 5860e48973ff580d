# SPDX-License-Identifier: Apache-2.0
"""What clients read in the attributes of a deployable, and in which order."""

from cyborg_lite.model.attribute_keys import rank, shown_attributes
from cyborg_lite.model.inventory import Deployable


def _shown(**fields: object) -> list[tuple[str, str]]:
    deployable = Deployable('h_d', **fields)  # type: ignore[arg-type]  # of any type
    return list(shown_attributes(deployable).items())


def test_class_and_traits_come_before_what_the_driver_says() -> None:
    shown = _shown(
        resource_class='FPGA', traits=('B', 'A'), attributes={'z': '1', 'a': '2'}
    )
    assert shown == [
        ('rc', 'FPGA'),
        ('traits1', 'B'),
        ('traits2', 'A'),
        ('a', '2'),
        ('z', '1'),
    ]


def test_what_only_holds_parts_shows_no_class() -> None:
    assert _shown(attributes={'a': '1'}) == [('a', '1')]


def test_a_driver_is_left_its_own_spelling() -> None:
    shown = _shown(
        resource_class='PGPU',
        traits=('A', 'B'),
        attributes={'trait1': 'B', 'numa': '0', 'rc': 'PGPU', 'trait0': 'A'},
    )
    assert shown == [('rc', 'PGPU'), ('trait0', 'A'), ('trait1', 'B'), ('numa', '0')]


def test_traits_are_never_spelled_twice() -> None:
    shown = _shown(resource_class='PGPU', traits=('A',), attributes={'trait0': 'A'})
    assert shown == [('rc', 'PGPU'), ('traits1', 'A')]


def test_the_tenth_trait_comes_after_the_second() -> None:
    keys = ['traits10', 'x', 'traits2', 'rc', 'traits1']
    assert sorted(keys, key=rank) == ['rc', 'traits1', 'traits2', 'traits10', 'x']
