# SPDX-License-Identifier: Apache-2.0
"""Calls of agents about their hosts; part of ``ConductorAPI``."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.host_events import HostEvent, RecoveryResult
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.report_changes import ReportChanges
from cyborg_lite.model.services import HeartbeatDetails
from cyborg_lite.model.usage import Usage, usage_to_json
from cyborg_lite.rpc import compression, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.earlier_peers import UPGRADE_TIME, is_unsupported
from cyborg_lite.rpc.transport import Caller


class HostCalls:
    """Typed calls of agents about their hosts."""

    _caller: Caller
    _short_from = 0.0  # by the monotonic clock: when to try short heartbeats again

    def report_host(self, context: RequestContext, report: HostReport) -> int:
        """Send the whole inventory of the agent's host.

        :returns: the number of the report. A larger number: nothing was stored, and the
            report must be sent with this number. 0: a conductor of an earlier release
        """
        answer = self._caller.call(
            context, 'report_host', since='1.0', report=wire.dump(report)
        )
        return int(answer or 0)

    def report_changes(
        self, context: RequestContext, changes: ReportChanges
    ) -> int | None:
        """Send the changes of an inventory since an earlier report, or all of it.

        :returns: as ``report_host``. None: nothing was stored, because the conductor
            does not have the earlier report, or is of an earlier release
        """
        try:
            answer = self._caller.call(
                context,
                'report_changes',
                since='1.6',
                host=changes.report.hostname,
                changes=compression.dump(changes),
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                return None
            raise
        return None if answer is None else int(answer)

    def reconcile_handles(
        self, context: RequestContext, host: str, handles: Sequence[str]
    ) -> tuple[str, ...] | None:
        """Return the prepared handles that no ARQ owns any more.

        The agent must release them.

        :param handles: uuids of all prepared handles of the host
        :returns: None if the conductor is of an earlier release
        """
        try:
            answer = self._caller.call(
                context,
                'reconcile_handles',
                since='1.2',
                host=host,
                handles=list(handles),
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                return None
            raise
        return tuple(map(str, answer))

    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        details: HeartbeatDetails | None = None,
    ) -> bool:
        """Send a heartbeat; return True if the conductor requires the host report.

        :param digest: of the last report; the conductor compares it with the stored one
        """
        # Heartbeats are most of the messages of an agent, so defaults are not sent.
        optional: dict[str, Any] = {}
        if details is not None:
            optional['vitals'] = {'boot_id': details.boot_id}
        if details is not None and details.identity:
            optional['vitals']['identity'] = details.identity
        if details is not None and details.started:
            optional['vitals']['started'] = True
        if details is not None and details.telemetry:
            optional['vitals']['figures'] = _telemetry_to_json(details.telemetry)
        answer = self._caller.call(
            context,
            'heartbeat',
            since='1.0',
            host=host,
            digest=digest,
            version=version,
            **optional,
        )
        return bool(answer)

    def repeat(
        self,
        context: RequestContext,
        host: str,
        token: str,
        telemetry: Mapping[str, Usage] | None = None,
    ) -> bool:
        """Send a heartbeat that repeats the last one of the host.

        :param token: ``Heartbeat.token`` of the last heartbeat
        :param telemetry: by control address; None or empty: unchanged
        :returns: False: nothing was recorded. The conductor does not know the token, or
            is of an earlier release, and requires a whole heartbeat.
        """
        if time.monotonic() < self._short_from:
            return False
        optional: dict[str, Any] = {}
        if telemetry:
            optional['figures'] = _telemetry_to_json(telemetry)
        try:
            answer = self._caller.call(
                context,
                'repeat',
                since='1.13',
                host=host,
                token=token,
                **optional,
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                # Such a conductor logs each call that it does not know.
                self._short_from = time.monotonic() + UPGRADE_TIME
                return False
            raise
        return bool(answer)

    def repeat_without_answer(
        self,
        context: RequestContext,
        host: str,
        token: str,
        telemetry: Mapping[str, Usage] | None = None,
    ) -> None:
        """Send a heartbeat as ``repeat`` does, but without an answer.

        The caller does not learn whether the message arrives, or whether the conductor
        knows the token.

        :raises ServiceUnavailable: the broker did not accept the message
        """
        optional = {'figures': _telemetry_to_json(telemetry)} if telemetry else {}
        self._caller.cast(
            context, 'repeat', since='1.13', host=host, token=token, **optional
        )

    def report_recovery(
        self, context: RequestContext, result: RecoveryResult
    ) -> tuple[AllocatedHandle, ...]:
        """Report the prepared handles after a host reboot. Safe to repeat.

        The ARQs of the handles change to Bound or BindFailed. A conductor of an earlier
        release does not connect handles again.

        :returns: further handles to rebuild, which the agent does not know
        """
        arguments = wire.dump(result)
        connecting = arguments.pop('connecting', None)
        call = partial(self._caller.call, context, 'report_recovery')
        try:
            if connecting:
                answer = call(since='1.14', connecting=connecting, **arguments)
            else:
                answer = call(since='1.0', **arguments)
        except ServiceUnavailable as error:
            if not connecting or not is_unsupported(error):
                raise
            answer = call(since='1.0', **arguments)
        return wire.load_all(AllocatedHandle, answer)

    def report_events(
        self, context: RequestContext, host: str, events: Sequence[HostEvent]
    ) -> int:
        """Send events of a host in order; the conductor ignores known events.

        :returns: the number of the last event of that host that the conductor received
        """
        answer = self._caller.call(
            context,
            'report_events',
            since='1.0',
            host=host,
            events=wire.dump(list(events)),
        )
        return int(answer)


def _telemetry_to_json(telemetry: Mapping[str, Usage]) -> dict[str, Any]:
    return {address: usage_to_json(usage) for address, usage in telemetry.items()}
