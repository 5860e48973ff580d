# SPDX-License-Identifier: Apache-2.0
"""Tests of the dispatcher: each call reaches the service that implements it."""

from collections.abc import Sequence

import pytest

from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves, serves_host
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR


class ArqService:
    contexts: Sequence[RequestContext] = ()

    @serves(Conductor.unbind_arqs)
    def unbind(self, context: RequestContext, uuids: Sequence[str]) -> str:
        self.contexts = (*self.contexts, context)
        raise ArqNotFound(uuid=uuids[0])


class DeviceService:
    statuses: Sequence[DeviceStatus] = ()

    @serves(Conductor.set_device_status)
    def set_status(
        self,
        uuid: str,
        status: DeviceStatus,
        reason: str = '',
        generation: int | None = None,
    ) -> None:
        self.statuses = (*self.statuses, status)

    @serves(Conductor.delete_service)
    def fail(self, uuid: str) -> None:
        raise ZeroDivisionError('password=secret')


class Scan:
    @serves_host(Agents.scan)
    def scan(self) -> str:
        return 'digest'


def test_call_passes_typed_arguments_to_service() -> None:
    devices = DeviceService()
    arguments = {'uuid': 'u', 'status': 'maintaining'}
    dispatcher = Dispatcher(CONDUCTOR, [ArqService(), devices])
    dispatcher.call('set_device_status', daemon_context(), arguments)
    assert devices.statuses == (DeviceStatus.MAINTAINING,)


def test_context_reaches_method_that_takes_it() -> None:
    arqs, context = ArqService(), daemon_context()
    with pytest.raises(ArqNotFound, match='x'):
        Dispatcher(CONDUCTOR, [arqs]).call('unbind_arqs', context, {'uuids': ['x']})
    assert arqs.contexts == (context,)


def test_unexpected_error_is_logged_and_hidden(
    caplog: pytest.LogCaptureFixture,
) -> None:
    dispatcher = Dispatcher(CONDUCTOR, [DeviceService()])
    with pytest.raises(CyborgError) as caught:
        dispatcher.call('delete_service', daemon_context(), {'uuid': 'u'})
    assert caught.value.text == CyborgError.message
    assert 'delete_service failed' in caplog.text
    assert 'ZeroDivisionError' in caplog.text


def test_dispatcher_implements_methods_of_services_only() -> None:
    dispatcher = Dispatcher(CONDUCTOR, [ArqService(), DeviceService()])
    assert dispatcher.implements('unbind_arqs')
    assert not dispatcher.implements('bind_arqs')
    assert not dispatcher.implements('call')
    missing = dispatcher.list_missing()
    assert 'bind_arqs' in missing
    assert len(missing) == len(CONDUCTOR.methods) - 3


def test_service_of_another_interface_is_refused() -> None:
    with pytest.raises(LookupError, match='scan'):
        Dispatcher(CONDUCTOR, [Scan()])
    assert Dispatcher(AGENTS, [Scan()]).implements('scan')
