# SPDX-License-Identifier: Apache-2.0
"""Tests of the dispatcher: each call reaches the service that implements it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.devices.devices import (
    AllocatedHandle,
    ConfirmedHandle,
    DeviceStatus,
)
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher, serves, serves_host
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR


class ArqService:
    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    @serves(Conductor.unbind_arqs)
    def unbind(self, context: RequestContext, uuids: Sequence[str]) -> str:
        self.contexts.append(context)
        raise ArqNotFound(uuid=uuids[0])


class DeviceService:
    def __init__(self) -> None:
        self.statuses: list[DeviceStatus] = []

    @serves(Conductor.set_device_status)
    def set_status(
        self,
        uuid: str,
        status: DeviceStatus,
        reason: str = '',
        generation: int | None = None,
    ) -> None:
        self.statuses.append(status)

    @serves(Conductor.choose_alternatives)
    def choose(self, uuid: str) -> tuple[int, ...]:
        return (0, 1)

    @serves(Conductor.delete_service)
    def fail(self, uuid: str) -> None:
        raise ZeroDivisionError('password=secret')


class Preparation:
    @serves_host(Agents.prepare)
    def prepare(
        self, handles: Sequence[AllocatedHandle]
    ) -> tuple[ConfirmedHandle, ...]:
        return tuple(handle.confirm() for handle in handles)


@pytest.fixture
def devices() -> DeviceService:
    return DeviceService()


@pytest.fixture
def arqs() -> ArqService:
    return ArqService()


@pytest.fixture
def dispatcher(arqs: ArqService, devices: DeviceService) -> Dispatcher:
    return Dispatcher(CONDUCTOR, [arqs, devices])


# Any: JSON.
def call(dispatcher: Dispatcher, name: str, **arguments: Any) -> Any:
    return dispatcher.call(name, daemon_context(), arguments)


def test_call_passes_typed_arguments_to_service(
    dispatcher: Dispatcher, devices: DeviceService
) -> None:
    call(dispatcher, 'set_device_status', uuid='u', status='maintaining')
    assert devices.statuses == [DeviceStatus.MAINTAINING]


def test_call_returns_answer_as_json(dispatcher: Dispatcher) -> None:
    assert call(dispatcher, 'choose_alternatives', uuid='u') == [0, 1]


def test_context_reaches_method_that_takes_it(
    dispatcher: Dispatcher, arqs: ArqService
) -> None:
    context = daemon_context()
    with pytest.raises(ArqNotFound, match='x'):
        dispatcher.call('unbind_arqs', context, {'uuids': ['x']})
    assert arqs.contexts == [context]


@pytest.mark.parametrize(
    'arguments',
    [{}, {'uuid': 'u'}, {'uuid': 'u', 'status': 'broken'}, {'uuid': 1, 'status': 'x'}],
)
def test_malformed_arguments_reach_no_service(
    dispatcher: Dispatcher, devices: DeviceService, arguments: Mapping[str, Any]
) -> None:
    with pytest.raises(MalformedData):
        call(dispatcher, 'set_device_status', **arguments)
    assert devices.statuses == []


def test_unexpected_error_is_logged_and_hidden(
    dispatcher: Dispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(CyborgError) as caught:
        call(dispatcher, 'delete_service', uuid='u')
    assert caught.value.text == CyborgError.message
    assert 'delete_service failed' in caplog.text
    assert 'ZeroDivisionError' in caplog.text


def test_dispatcher_implements_methods_of_services_only(dispatcher: Dispatcher) -> None:
    assert dispatcher.implements('unbind_arqs')
    assert not dispatcher.implements('bind_arqs')
    assert not dispatcher.implements('call')
    missing = dispatcher.list_missing()
    assert 'bind_arqs' in missing
    assert len(missing) == len(CONDUCTOR.methods) - 4


def test_service_of_another_interface_is_refused() -> None:
    with pytest.raises(LookupError, match='prepare'):
        Dispatcher(CONDUCTOR, [Preparation()])
    assert Dispatcher(AGENTS, [Preparation()]).implements('prepare')
