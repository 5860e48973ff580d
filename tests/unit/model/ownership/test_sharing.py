# SPDX-License-Identifier: Apache-2.0
"""Rules for conflicts with another service."""

from cyborg_lite.model.ownership.sharing import find_shared_class
from cyborg_lite.model.providers.providers import TreeNode

NODE = TreeNode('uuid', 'compute-1_pci_0000_3b_00_0', 1, 'root', 'root')


def test_find_shared_class_names_common_classes() -> None:
    finding = find_shared_class('compute-1', NODE, ['VGPU', 'PGPU'], ['VGPU', 'FPGA'])
    assert finding is not None
    assert (finding.rp_uuid, finding.provider_name) == ('uuid', NODE.name)
    assert 'also has VGPU. ' in finding.reason
    assert find_shared_class('compute-1', NODE, ['PGPU'], ['VGPU']) is None
