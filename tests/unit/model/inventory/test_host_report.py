# SPDX-License-Identifier: Apache-2.0
"""Tests of devices, deployables and the digest of host reports."""

import uuid
from dataclasses import replace

import pytest

from cyborg_lite.model.inventory.host_report import Deployable
from tests.builders.reports import card, report, with_root

NAME = 'compute-1_0000:01:00.0'


def test_provider_uuid_is_derived_from_name() -> None:
    expected = str(uuid.uuid3(uuid.NAMESPACE_DNS, NAME))
    assert card(1).root.provider_uuid == expected
    assert with_root(card(1), total=5).root.provider_uuid == expected
    assert with_root(card(1), name='other').root.provider_uuid != expected


@pytest.mark.parametrize(
    ('total', 'reserved', 'in_use', 'unavailable'),
    [(4, 0, 0, 0), (4, 1, 0, 1), (4, 1, 2, 3), (4, 3, 3, 4), (0, 1, 0, 0)],
)
def test_unavailable_counts_reserved_and_foreign_use_up_to_total(
    total: int, reserved: int, in_use: int, unavailable: int
) -> None:
    handles = tuple(
        replace(handle, in_use=number < in_use)
        for number, handle in enumerate(card(1, handles=4).root.handles)
    )
    deployable = Deployable('x', total=total, reserved=reserved, handles=handles)
    assert deployable.unavailable == unavailable


def test_digest_ignores_order_of_devices() -> None:
    first, second = card(1), card(2)
    assert report(first, second).digest == report(second, first).digest
    assert len(report().digest) == 32


def test_digest_is_the_same_in_each_release() -> None:
    # A changed digest makes every agent send its whole inventory after an upgrade.
    assert report(card(1, handles=2)).digest == '2c80102b22f65488999b2f421fd2c3f5'
