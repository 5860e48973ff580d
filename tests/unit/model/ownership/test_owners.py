# SPDX-License-Identifier: Apache-2.0
"""Tests of the owner of a device."""

from dataclasses import replace

import pytest

from cyborg_lite.model.ownership.plan import OwnedDevice

DEVICE = OwnedDevice(
    hostname='compute-1',
    address='0000:3b:00.0',
    vendor='10de',
    product='1eb8',
    model='Tesla T4',
    driver='NVIDIA',
    conflict='',
    schedulable=True,
    reason='',
)


@pytest.mark.parametrize(
    ('device', 'owner', 'reason'),
    [
        (DEVICE, 'this service', ''),
        (replace(DEVICE, schedulable=False, reason='no IOMMU'), 'nobody', 'no IOMMU'),
        (replace(DEVICE, conflict='Nova has it.'), 'both', 'Nova has it.'),
        (
            replace(DEVICE, conflict='Nova has it.', schedulable=False),
            'both',
            'Nova has it.',
        ),
    ],
)
def test_owner_follows_conflict_and_offer(
    device: OwnedDevice, owner: str, reason: str
) -> None:
    assert (device.owner, device.owner_reason) == (owner, reason)
