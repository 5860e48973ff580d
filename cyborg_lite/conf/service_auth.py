# SPDX-License-Identifier: Apache-2.0
"""Options that the sections of all remote services share; not a section itself."""

from typing import Final

from keystoneauth1 import loading
from oslo_config import cfg

_TIMEOUT: Final = """
Seconds to wait for a connection, and for each whole response. Requests are sent by
jobs, which are retried later, so a short timeout costs little. Raise it if the service
responds slowly under load.
"""

_OVERRIDE: Final = """
URL of the service, {form}. Set it if there is no service catalogue: without an
auth_type (or with "none"), requests carry no credentials but the token "admin", which
services without authentication accept as an administrator. With an auth_type, it only
replaces the URL from the catalogue.
"""


PLUGIN_OPTIONS: Final[list[cfg.Opt]] = loading.get_auth_plugin_conf_options('password')
"""Options of the password plugin, for the sample file only.

A plugin registers its own options when it is loaded.
"""


def options(service_type: str, endpoint: str) -> list[cfg.Opt]:
    """Return the keystoneauth options with the defaults of this service.

    :param endpoint: form and example of a URL, for the help of endpoint_override
    """
    common: list[cfg.Opt] = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    cfg.set_defaults(
        common,
        service_type=service_type,
        valid_interfaces=['internal', 'public'],
        timeout=10,
        connect_retries=1,
    )
    for option in common:
        if option.dest == 'timeout':
            option.help = _TIMEOUT
        elif option.dest == 'endpoint_override':
            option.help = _OVERRIDE.format(form=endpoint)
    return common
