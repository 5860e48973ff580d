# SPDX-License-Identifier: Apache-2.0
"""Tests of the owner of a device and of the configuration that changes it."""

import json
from dataclasses import replace

import pytest

from cyborg_lite.model.ownership.nova_config import NovaPciFunction, parse_nova_config
from cyborg_lite.model.ownership.plan import (
    OwnedDevice,
    config_lines_for_cyborg,
    config_lines_for_nova,
)

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


def test_config_lines_for_nova_claim_device() -> None:
    lines = [
        text for file, text in config_lines_for_nova(DEVICE) if file == 'nova.conf'
    ]
    sections = [line.replace('[pci] ', '[pci]\n') for line in lines]
    function = NovaPciFunction(DEVICE.address, DEVICE.vendor, DEVICE.product)
    assert parse_nova_config(sections).find_claim([function]) is not None
    alias = json.loads(lines[1].partition('= ')[2])
    assert (alias['vendor_id'], alias['product_id']) == ('10de', '1eb8')


def test_config_lines_for_cyborg_name_both_files() -> None:
    lines = config_lines_for_cyborg(DEVICE)
    assert {file for file, _ in lines} == {'nova.conf', 'cyborg-lite.conf'}
    assert all(text.startswith('no ') for _, text in lines)


VGPU_CARD = replace(DEVICE, resource_classes=('VGPU',))


def test_config_lines_of_vgpu_card_separate_the_classes() -> None:
    texts = [text for _, text in config_lines_for_nova(VGPU_CARD)]
    assert '[mdev_TYPE] mdev_class = CUSTOM_NOVA_VGPU' in texts
    assert '[mdev_TYPE] device_addresses = 0000:3b:00.0' in texts
    assert any('trait:OWNER_CYBORG=forbidden' in text for text in texts)
    assert not any('device_spec' in text for text in texts)
    own = [text for _, text in config_lines_for_cyborg(VGPU_CARD)]
    assert any('vgpu_resource_class = CUSTOM_CYBORG_VGPU' in text for text in own)
    assert not replace(DEVICE, resource_classes=('PGPU',)).has_vgpus
