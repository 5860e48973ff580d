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
    cfg.IntOpt(
        'max_unbound_requests',
        default=100,
        min=-1,
        help="""
Number of ARQs of a project that were never bound. Creating more is refused with 403.
The limit applies to users of the project who call the API themselves, not to the
Compute service with its service token and not to administrators. -1: no limit. Raise
it if users create ARQs with a tool of their own.
""",
    ),
]
