# SPDX-License-Identifier: Apache-2.0
"""Rules for conflicts with another service."""

from cyborg_lite.model.ownership.sharing import (
    OwnProvider,
    find_foreign_instances,
    find_shared_class,
    list_unknown_consumers,
)
from cyborg_lite.model.providers.providers import TreeNode

NODE = TreeNode('uuid', 'compute-1_pci_0000_3b_00_0', 1, 'root', 'root')
CARD = OwnProvider('card', 'compute-1_0000:af:00.0', 'VGPU', frozenset({'a'}))


def test_find_shared_class_names_common_classes() -> None:
    finding = find_shared_class('compute-1', NODE, ['VGPU', 'PGPU'], ['VGPU', 'FPGA'])
    assert finding is not None
    assert (finding.provider_uuid, finding.provider_name) == ('uuid', NODE.name)
    assert 'also has VGPU. ' in finding.reason
    assert find_shared_class('compute-1', NODE, ['PGPU'], ['VGPU']) is None


def test_list_unknown_consumers_excludes_instances_with_arqs() -> None:
    assert list_unknown_consumers(CARD, {'c', 'a', 'b'}) == ('b', 'c')


def test_find_foreign_instances_on_the_host_only() -> None:
    nodes = {'b': 'compute-1', 'c': 'compute-2', 'd': None}
    (finding,) = find_foreign_instances('compute-1', CARD, nodes)
    assert 'Instance b has allocated VGPU' in finding.reason
