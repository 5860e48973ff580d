# SPDX-License-Identifier: Apache-2.0
"""Options that every daemon has."""

import socket
from typing import Final

from oslo_config import cfg

GROUP: Final = 'DEFAULT'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'host',
        default=socket.gethostname(),
        max_length=255,
        sample_default='<the name of this host>',
        help="""
The name of this host in accelerator requests and in Placement. On a compute node it
must be the hypervisor hostname that Nova uses for its resource provider, or Nova's
bind requests name a host that is not known here. Change it when the two differ.
""",
    ),
]
