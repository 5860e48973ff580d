# SPDX-License-Identifier: Apache-2.0
"""Interface versions of RPC during a rolling upgrade."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'upgrade_levels'


def _option(kind: str) -> cfg.Opt:
    return cfg.StrOpt(
        kind,
        default='auto',
        regex=r'auto|[0-9]+\.[0-9]+',
        help=f"""
Highest version of the RPC interface that is used in calls to each {kind}, for example
1.2. With auto it is that of the oldest running {kind}, read once a minute. Set it only
if daemons that report no version must be called.
""",
    )


OPTIONS: Final[list[cfg.Opt]] = [_option('conductor'), _option('agent')]
