# SPDX-License-Identifier: Apache-2.0
"""Tests of the attributes of a deployable and their order."""

from cyborg_lite.model.inventory.attribute_keys import build_attributes
from cyborg_lite.model.inventory.host_report import Deployable


def _list_attributes(**fields: object) -> list[tuple[str, str]]:
    deployable = Deployable('h_d', **fields)  # type: ignore[arg-type]  # of any type
    return list(build_attributes(deployable).items())


def test_attributes_list_class_and_traits_before_driver_values() -> None:
    attributes = _list_attributes(
        resource_class='FPGA', traits=('B', 'A'), attributes={'z': '1', 'a': '2'}
    )
    assert attributes == [
        ('rc', 'FPGA'),
        ('traits1', 'B'),
        ('traits2', 'A'),
        ('a', '2'),
        ('z', '1'),
    ]
