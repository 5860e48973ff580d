# SPDX-License-Identifier: Apache-2.0
"""Options of all daemons."""

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
Name of this host in ARQs and in Placement. On a compute node it must be the hypervisor
hostname that Nova uses for its resource provider; otherwise binds from Nova name an
unknown host. Change it if the two names differ.
""",
    ),
]
