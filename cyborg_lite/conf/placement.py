# SPDX-License-Identifier: Apache-2.0
"""Options of the connection to Placement, which stores the inventory."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.conf import service_auth

GROUP: Final = 'placement'

OPTIONS: Final[list[cfg.Opt]] = service_auth.options(
    'placement', 'e.g. http://controller/placement'
)

SAMPLE_OPTIONS: Final[list[cfg.Opt]] = [*OPTIONS, *service_auth.PLUGIN_OPTIONS]
