# SPDX-License-Identifier: Apache-2.0
"""Our defaults for options of the libraries, as the sample configuration shows them."""

from cyborg_lite import conf as configuration
from cyborg_lite.rpc import transport


def set_all() -> None:
    """What oslo-config-generator calls before it reads the defaults."""
    configuration.set_library_defaults()
    transport.set_library_defaults()
