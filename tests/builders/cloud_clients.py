# SPDX-License-Identifier: Apache-2.0
"""Clients of Nova and Placement for a given endpoint."""

from oslo_config import cfg

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conf import nova, placement


def create_nova_client(endpoint: str | None, retries: int = 0) -> Nova:
    """Create a Nova client; None: a client without a configured Nova."""
    conf = cfg.ConfigOpts()
    conf.register_opts(nova.OPTIONS, group=nova.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=nova.GROUP)
    conf.set_override('connect_retries', retries, group=nova.GROUP)
    conf.set_override('connect_retry_delay', 0.1, group=nova.GROUP)
    return Nova.from_config(conf)


def create_placement_client(endpoint: str | None) -> Placement:
    """Create a Placement client.

    :raises ConfigurationError: the endpoint is None
    """
    conf = cfg.ConfigOpts()
    conf.register_opts(placement.OPTIONS, group=placement.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=placement.GROUP)
    return Placement.from_config(conf)
