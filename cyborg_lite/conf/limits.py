# SPDX-License-Identifier: Apache-2.0
"""Options of the limits of projects."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'limits'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help="""
Refuse to create ARQs with which a project would exceed its limits in Keystone. The
resources are accelerator_requests and class:NAME for each resource class, for example
class:PGPU. A resource without a registered limit has the limit 0. Set it to true after
the limits are registered; it requires the package oslo.limit and the section
[oslo_limit].
""",
    ),
]
