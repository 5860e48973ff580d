# SPDX-License-Identifier: Apache-2.0
"""Configuration of both services for the cards of a plan."""

from collections.abc import Mapping

from cyborg_lite.model.ownership.configuration import build_config
from cyborg_lite.model.ownership.plan import parse_plan

WHOLE, NOVA, OWN = '0000:01:00.0', '0000:3b:00.0', '0000:af:00.0'


def build(cards: Mapping[str, object]) -> list[tuple[str, str, str]]:
    rules = parse_plan({'compute-1': cards}).list_rules('compute-1')
    return [(line.file, line.section, line.text) for line in build_config(rules)]


def test_build_config_whole_cards() -> None:
    cards = {WHOLE: 'nova', '10de:2235': 'nova', NOVA: 'nobody', '*': 'cyborg'}
    assert build(cards) == [
        ('nova.conf', 'pci', f'device_spec = {{"address": "{WHOLE}"}}'),
        (
            'nova.conf',
            'pci',
            'device_spec = {"vendor_id": "10de", "product_id": "2235"}',
        ),
        (
            'cyborg-lite.conf',
            'agent',
            f'excluded_devices = {WHOLE}, 10de:2235, {NOVA}',
        ),
    ]


def test_build_config_vgpus_of_both_services() -> None:
    cards: dict[str, object] = {
        NOVA: {
            'owner': 'nova',
            'vgpu_type': 'nvidia-222',
            'resource_class': 'CUSTOM_NOVA_VGPU',
        },
        OWN: {'owner': 'cyborg', 'vgpu_type': 'nvidia-231'},
    }
    assert build(cards) == [
        ('nova.conf', 'devices', 'enabled_mdev_types = nvidia-222'),
        ('nova.conf', 'mdev_nvidia-222', f'device_addresses = {NOVA}'),
        ('nova.conf', 'mdev_nvidia-222', 'mdev_class = CUSTOM_NOVA_VGPU'),
        ('cyborg-lite.conf', 'agent', f'excluded_devices = {NOVA}'),
        ('cyborg-lite.conf', 'nvidia_gpu_driver', f'vgpu_types = {OWN} = nvidia-231'),
        (
            'flavors',
            '',
            'openstack flavor set FLAVOR --property resources:CUSTOM_NOVA_VGPU=1 '
            '--property trait:OWNER_CYBORG=forbidden',
        ),
    ]


def test_build_config_own_class() -> None:
    own = {'owner': 'cyborg', 'vgpu_type': 'T4-2Q', 'resource_class': 'CUSTOM_OWN_VGPU'}
    assert build({OWN: own, NOVA: own}) == [
        (
            'cyborg-lite.conf',
            'nvidia_gpu_driver',
            f'vgpu_types = {OWN} = T4-2Q, {NOVA} = T4-2Q',
        ),
        (
            'cyborg-lite.conf',
            'nvidia_gpu_driver',
            'vgpu_resource_class = CUSTOM_OWN_VGPU',
        ),
    ]
