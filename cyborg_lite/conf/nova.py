# SPDX-License-Identifier: Apache-2.0
"""How we reach Nova, which waits for the events of its accelerator requests."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.conf import service_auth

GROUP: Final = 'nova'

OPTIONS: Final[list[cfg.Opt]] = service_auth.options(
    'compute', 'with its version, e.g. http://controller/compute/v2.1'
)

SAMPLE_OPTIONS: Final[list[cfg.Opt]] = [*OPTIONS, *service_auth.PLUGIN_OPTIONS]
