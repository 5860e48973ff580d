# SPDX-License-Identifier: Apache-2.0
"""Tests of the queues of the local messaging driver, without threads where possible."""

import json

import pytest

from cyborg_lite.rpc.local.broker import Broker, Key, Listener, Message

ANY: Key = ('exchange', 'topic', None)
NAMED: Key = ('exchange', 'topic', 'server-1')


@pytest.fixture
def broker() -> Broker:
    return Broker()


def build_message(broker: Broker, number: int = 0, key: Key = ANY) -> Message:
    return Message(broker, key, json.dumps([{}, {'n': number}]))


def poll(listener: Listener) -> list[int]:
    """Return the number of the next message, if one is queued."""
    return [received.message['n'] for received in listener.poll(timeout=0)]


def test_deliver_before_join_is_received_in_order(broker: Broker) -> None:
    for number in range(3):
        broker.deliver(ANY, build_message(broker, number))
    listener = broker.join((ANY,))
    assert [poll(listener) for _ in range(4)] == [[0], [1], [2], []]


def test_named_message_is_received_by_named_listener(broker: Broker) -> None:
    any_listener, named_listener = broker.join((ANY,)), broker.join((NAMED, ANY))
    broker.deliver(NAMED, build_message(broker, 1, NAMED))
    assert poll(any_listener) == []
    assert poll(named_listener) == [1]


def test_fan_out_reaches_present_listeners_only(broker: Broker) -> None:
    listeners = [broker.join((ANY,)) for _ in range(2)]
    broker.fan_out(ANY, '[{}, {"n": 7}]')
    late = broker.join((ANY,))
    assert [poll(listener) for listener in (*listeners, late)] == [[7], [7], []]


def test_fan_out_precedes_queued_messages(broker: Broker) -> None:
    listener = broker.join((ANY,))
    broker.deliver(ANY, build_message(broker, 1))
    broker.fan_out(ANY, '[{}, {"n": 2}]')
    assert [poll(listener), poll(listener)] == [[2], [1]]


def test_withdraw_received_message_has_no_effect(broker: Broker) -> None:
    listener = broker.join((ANY,))
    message = build_message(broker, 1)
    broker.deliver(ANY, message)
    assert poll(listener) == [1]
    broker.withdraw(ANY, message)
    assert poll(listener) == []


def test_stopped_listener_receives_nothing(broker: Broker) -> None:
    listener = broker.join((ANY,))
    listener.stop()
    listener.stop()
    broker.deliver(ANY, build_message(broker, 1))
    broker.fan_out(ANY, '[{}, {"n": 2}]')
    assert listener.poll() == []
    assert poll(broker.join((ANY,))) == [1]


def test_reply_to_cast_is_ignored(broker: Broker) -> None:
    message = build_message(broker)
    message.reply('x')
    message.heartbeat()
    assert message.answer is None
