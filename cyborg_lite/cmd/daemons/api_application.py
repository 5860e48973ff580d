# SPDX-License-Identifier: Apache-2.0
"""The WSGI application of an external server, and its connection to the message bus.

An external server needs neither the built-in web server nor the runner of the daemons,
so this module imports neither.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.api.app import assemble
from cyborg_lite.cmd.runner import garbage_collection
from cyborg_lite.cmd.support import message_keys
from cyborg_lite.model.hosts.services import CONDUCTOR, ServiceState
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.security.keys import Role
from cyborg_lite.rpc.upgrade_levels import Pins
from cyborg_lite.version import VERSION

BINARY: Final = 'cyborg-lite-api'

# Seconds until an unanswered RPC ends in a 503. A hung conductor refuses no connection,
# so only a timeout detects it. The default of oslo.messaging, 60 s, is also the timeout
# of most clients, which would then never see the 503.
RPC_TIMEOUT: Final = 30
# Seconds. The versions of the conductors are read during a call.
_VERSIONS_TIMEOUT: Final = 5.0


# Any: a WSGI application.
def build_from_files() -> Any:
    """Build the WSGI application from the configuration files.

    It has its own connection to the message bus.
    """
    conf = configuration.parse([], BINARY)
    configuration.set_up_logging(conf)
    transport.prepare_locks(conf)
    application = assemble(conf, connect_conductor(connect(conf)))
    garbage_collection.exempt_objects_of_start()
    return application


def connect(conf: cfg.ConfigOpts) -> transport.Transport:
    """Connect to the message bus.

    :raises ConfigurationError: the transport or the key file is invalid
    """
    signer = message_keys.create_signer(conf, Role.API)
    bus = transport.connect(conf, RPC_TIMEOUT, signer)
    conductor = connect_conductor(bus, _VERSIONS_TIMEOUT)
    read_versions = partial(_read_versions, conductor)
    transport.pin_versions(bus, Pins(conf.upgrade_levels, read_versions))
    return bus


def _read_versions(conductor: Conductor) -> Iterator[tuple[str, str]]:
    """Yield binary and version of each running conductor of another version."""
    query = Query(filters={'binary': (CONDUCTOR,), 'state': (ServiceState.UP,)})
    for service in conductor.list_services(daemon_context(), query):
        if service.version != VERSION:
            yield service.binary, service.version
