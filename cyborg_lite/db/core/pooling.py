# SPDX-License-Identifier: Apache-2.0
"""Pools of connections that send no statements of their own.

By default a pool tests each connection with a ping before a transaction, and sends a
ROLLBACK after it. Neither is needed. ``Database`` repeats a transaction whose
connection is lost, unless the commit was sent; the pool then drops all connections.
SQLAlchemy rolls back an open transaction when its connection is closed.
"""

from typing import Any, Final

from sqlalchemy import URL, CreateEnginePlugin
from sqlalchemy.dialects import plugins

_NAME: Final = 'cyborg_lite.pooling'


class PoolPlugin(CreateEnginePlugin):
    """Changes the arguments of the pool, which oslo.db does not pass on."""

    def update_url(self, url: URL) -> URL:
        """Return the URL unchanged."""
        return url

    # Any: arguments of several types.
    def handle_pool_kwargs(self, pool_cls: Any, pool_args: dict[str, Any]) -> None:
        """Disable the ping and the ROLLBACK of the pool."""
        pool_args.update(pre_ping=False, reset_on_return=None)


def add_plugin(url: URL) -> URL:
    """Return the URL of an engine that uses ``PoolPlugin``."""
    return url.update_query_dict({'plugin': _NAME})


plugins.register(_NAME, __name__, PoolPlugin.__name__)
