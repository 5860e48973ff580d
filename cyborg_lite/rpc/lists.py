# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor that return long lists; part of ``ConductorAPI``."""

import functools
import time
from typing import Final, TypeVar

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.arqs import Arq
from cyborg_lite.model.devices import DeployableRecord, DeviceRecord
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import compression, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.earlier_peers import UPGRADE_TIME, is_unsupported
from cyborg_lite.rpc.pages import load_page
from cyborg_lite.rpc.transport import Caller

T = TypeVar('T')

# Filters that match few rows. A short list costs less if it is not compressed.
_NARROW: Final = frozenset({'instance_uuid', 'uuid'})


class ListCalls:
    """Typed calls that return lists."""

    _caller: Caller
    _packed_from = 0.0  # by the monotonic clock: when to request compressed lists again

    def list_arqs(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        """Return the ARQs that match the query and that the caller may see.

        Filters: ``instance_uuid``, ``uuid``, ``state``, ``hostname``,
        ``device_rp_uuid``, ``device_profile_name``, ``project_id``.
        """
        return self._list(context, 'list_arqs', Arq, query)

    def list_devices(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceRecord, ...]:
        """Return the devices that match the query.

        Filters: ``uuid``, ``type``, ``vendor``, ``hostname``, ``status``, ``model``,
        ``health``. A detailed query also returns the ARQs that use each device.
        """
        return self._list(context, 'list_devices', DeviceRecord, query)

    def list_deployables(
        self, context: RequestContext, query: Query
    ) -> tuple[DeployableRecord, ...]:
        """Return the deployables that match the query.

        Filters: ``uuid``, ``name``, ``name_prefix``, ``parent_uuid``, ``root_uuid``,
        ``device_id``, ``rp_uuid``, ``driver_name``, ``bitstream_id``.
        """
        return self._list(context, 'list_deployables', DeployableRecord, query)

    def _list(
        self, context: RequestContext, method: str, cls: type[T], query: Query
    ) -> tuple[T, ...]:
        """Return the objects that match the query, compressed on the way if many."""
        is_packed = _NARROW.isdisjoint(query.filters)
        if is_packed and time.monotonic() >= self._packed_from:
            try:
                text = self._caller.call(
                    context, method, since='1.15', query=wire.dump(query), packed=True
                )
                return load_page(text, functools.partial(compression.load_list, cls))
            except ServiceUnavailable as error:
                if not is_unsupported(error):
                    raise
                # Such a conductor logs each call that it does not know.
                self._packed_from = time.monotonic() + UPGRADE_TIME
        answer = self._caller.call(context, method, since='1.0', query=wire.dump(query))
        return load_page(answer, functools.partial(wire.load_all, cls))
