# SPDX-License-Identifier: Apache-2.0
"""Resource class of vGPUs, which an operator can separate from that of Nova."""

from typing import Final

from oslo_config import cfg

VGPU: Final = 'VGPU'

VGPU_CLASS: Final = cfg.StrOpt(
    'vgpu_resource_class',
    default=VGPU,
    regex=r'^(VGPU|CUSTOM_[A-Z0-9_]+)$',
    help="""
Resource class of the vGPUs and virtual functions of this driver. Set it to a
custom class, such as CUSTOM_CYBORG_VGPU, if Nova creates vGPUs on this host
as well: Nova takes each allocation of the class VGPU on a host as a vGPU of
its own. Device profiles must then request the custom class. The class of a
card does not change while its vGPUs are in use.
""",
)
