# SPDX-License-Identifier: Apache-2.0
"""Configuration of both services for the cards of a plan."""

from collections.abc import Mapping

from cyborg_lite.model.ownership.plan import build_config, parse_plan

WHOLE, NOVA, OWN = '0000:01:00.0', '0000:3b:00.0', '0000:af:00.0'


def build(cards: Mapping[str, object]) -> list[tuple[str, str, str]]:
    rules = parse_plan({'compute-1': cards}).list_rules('compute-1')
    return [(line.file, line.section, line.text) for line in build_config(rules)]


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
