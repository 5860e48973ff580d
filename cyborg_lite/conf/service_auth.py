# SPDX-License-Identifier: Apache-2.0
"""Not a section: what the sections of the remote services have in common."""

from typing import Final

from keystoneauth1 import loading
from oslo_config import cfg

_TIMEOUT: Final = """
Seconds that we wait for a connection and for each answer. What waits is a job that is
tried again later, so a short time costs little. Raise it where the service answers
slowly under load.
"""

_OVERRIDE: Final = """
The address of the service, {form}. Set it where there is no service catalogue: with no
auth_type (or "none") requests carry no credentials, only the token "admin" that
services without authentication take for an administrator. With an auth_type it only
replaces the address from the catalogue.
"""


PLUGIN_OPTIONS: Final[list[cfg.Opt]] = loading.get_auth_plugin_conf_options('password')
"""For the sample file alone: a plugin registers its own options when it is loaded."""


def options(service_type: str, endpoint: str) -> list[cfg.Opt]:
    """The usual keystoneauth options, with our defaults.

    ``endpoint`` is an example of an address, shown to the operator.
    """
    found: list[cfg.Opt] = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    cfg.set_defaults(
        found,
        service_type=service_type,
        valid_interfaces=['internal', 'public'],
        timeout=10,
        connect_retries=1,
    )
    for option in found:
        if option.dest == 'timeout':
            option.help = _TIMEOUT
        elif option.dest == 'endpoint_override':
            option.help = _OVERRIDE.format(form=endpoint)
    return found
