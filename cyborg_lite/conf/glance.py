# SPDX-License-Identifier: Apache-2.0
"""Options of the connection to Glance, which stores the bitstreams."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.conf import service_auth

GROUP: Final = 'glance'

OPTIONS: Final[list[cfg.Opt]] = service_auth.options(
    'image', 'without a version, e.g. http://controller/image'
)

SAMPLE_OPTIONS: Final[list[cfg.Opt]] = [*OPTIONS, *service_auth.PLUGIN_OPTIONS]
