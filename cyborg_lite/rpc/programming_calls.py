# SPDX-License-Identifier: Apache-2.0
"""Bitstreams and the loading of them, as the API asks the conductor about them."""

from collections.abc import Mapping
from typing import Final

from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.program_jobs import ProgramJob
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller

# Seconds; the conductor itself answers earlier, and says then what goes on.
_TO_PROGRAM: Final = 60.0


class ProgrammingCalls:
    """Part of ``ConductorAPI``, where the version is."""

    _caller: Caller

    def list_bitstreams(
        self, context: RequestContext, filters: Mapping[str, str], deployable: str
    ) -> tuple[ListedBitstream, ...]:
        """All that fit the filters, what can be loaded first and best first.

        :param filters: of ``vendor``, ``board``, ``region``, ``function``
        :param deployable: uuid of the one to load it into; empty: of none
        :raises DeployableNotFound: no such deployable
        """
        answer = self._caller.call(
            context,
            'list_bitstreams',
            since='1.0',
            filters=dict(filters),
            deployable=deployable,
        )
        return wire.load_all(ListedBitstream, answer)

    def program_deployable(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> DeployableRecord:
        """Load a bitstream; return when it is loaded.

        :raises DeployableNotFound: no such deployable
        :raises DriverError: the host could not
        :raises ProgrammingTimedOut: the host did not end in time; it may still do so
        """
        answer = self._caller.call(
            context,
            'program_deployable',
            since='1.0',
            timeout=_TO_PROGRAM,
            uuid=uuid,
            image_uuid=image_uuid,
        )
        return wire.load(DeployableRecord, answer)

    def start_programming(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> ProgramJob:
        """As ``program_deployable``, but return when it is accepted."""
        answer = self._caller.call(
            context, 'start_programming', since='1.0', uuid=uuid, image_uuid=image_uuid
        )
        return wire.load(ProgramJob, answer)

    def show_program_job(self, context: RequestContext, uuid: str) -> ProgramJob:
        """:raises JobNotFound: no such job, or another project's"""
        answer = self._caller.call(context, 'show_program_job', since='1.0', uuid=uuid)
        return wire.load(ProgramJob, answer)
