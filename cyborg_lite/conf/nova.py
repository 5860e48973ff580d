# SPDX-License-Identifier: Apache-2.0
"""Options of the connection to Nova, which waits for events about its ARQs."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.conf import service_auth

GROUP: Final = 'nova'

ATTACHES_MDEV: Final = {'auto': None, 'true': True, 'false': False}
"""Values of ``attaches_mdev``. None: the trait of the compute node decides."""

OPTIONS: Final[list[cfg.Opt]] = [
    *service_auth.options(
        'compute', 'with the version, e.g. http://controller/compute/v2.1'
    ),
    cfg.StrOpt(
        'attaches_mdev',
        default='auto',
        choices=tuple(ATTACHES_MDEV),
        help="""
Whether Nova attaches mdevs to instances. Nova does so since 34.0.0; an older one starts
the instance without any of its accelerators. auto: the compute nodes whose resource
provider has the trait OWNER_NOVA, which Nova sets since 34.0.0, attach them. A bind of
an mdev on another compute node fails. Set it to true if Nova has the feature without
the trait, and to false to refuse mdevs everywhere.
""",
    ),
    cfg.BoolOpt(
        'attaches_unmanaged',
        default=False,
        help="""
Accept binds of PCI functions that must keep their driver, such as the virtual functions
of NVIDIA vGPUs without mdevs. Nova 34 detaches every function from its driver, which
breaks such a function. Set it to true if Nova reads the key managed of an attach
handle.
""",
    ),
]

SAMPLE_OPTIONS: Final[list[cfg.Opt]] = [*OPTIONS, *service_auth.PLUGIN_OPTIONS]
