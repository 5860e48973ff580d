# SPDX-License-Identifier: Apache-2.0
"""Defaults of cyborg_lite for library options, for the sample configuration."""

from cyborg_lite import conf as configuration
from cyborg_lite.rpc import transport


def set_all() -> None:
    """Set the defaults; oslo-config-generator calls this before it reads them."""
    configuration.set_library_defaults()
    transport.set_library_defaults()
