# SPDX-License-Identifier: Apache-2.0
"""Calls that return long lists, to conductors of this and of an earlier release."""

from datetime import UTC, datetime
from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.arqs import Arq, State
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import compression, wire
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ARQS = (Arq('u', State.INITIAL, 'gpu', 0, {'resources:PGPU': '1'}, NOW),)


class Conductor:
    """Conductor that lists ARQs, and records the versions of the calls."""

    def __init__(self, *, is_earlier: bool) -> None:
        self.versions: list[str] = []
        self.query: Any = None
        self._is_earlier = is_earlier

    def call(
        self, context: RequestContext, method: str, /, *, since: str, **arguments: Any
    ) -> Any:
        self.versions.append(since)
        self.query = arguments['query']
        if 'packed' not in arguments:
            return wire.dump(ARQS)
        if self._is_earlier:
            error = oslo_messaging.UnsupportedVersion(since)
            raise ServiceUnavailable(what='conductor') from error
        return compression.dump_list(Arq, ARQS)


def connect(monkeypatch: pytest.MonkeyPatch, conductor: Conductor) -> ConductorAPI:
    monkeypatch.setattr(
        'cyborg_lite.rpc.conductor.Caller', lambda *_arguments: conductor
    )
    return ConductorAPI(None)


def list_twice(client: ConductorAPI, query: Query) -> None:
    for _ in range(2):
        assert client.list_arqs(RequestContext(), query) == ARQS


def test_long_list_is_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    conductor = Conductor(is_earlier=False)
    query = Query(filters={'state': ('Bound',)}, limit=1000)
    list_twice(connect(monkeypatch, conductor), query)
    assert wire.load(Query, conductor.query) == query
    assert conductor.versions == ['1.15', '1.15']


@pytest.mark.parametrize('name', ['uuid', 'instance_uuid'])
def test_short_list_is_not_compressed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    conductor = Conductor(is_earlier=False)
    list_twice(connect(monkeypatch, conductor), Query(filters={name: ('u',)}))
    assert conductor.versions == ['1.0', '1.0']


def test_earlier_conductor_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    conductor = Conductor(is_earlier=True)
    list_twice(connect(monkeypatch, conductor), Query())
    assert conductor.versions == ['1.15', '1.0', '1.0']


def test_unreachable_conductor_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreachable(Conductor):
        def call(self, *_arguments: Any, **_keywords: Any) -> Any:
            raise ServiceUnavailable(what='conductor')

    client = connect(monkeypatch, Unreachable(is_earlier=False))
    with pytest.raises(ServiceUnavailable):
        client.list_arqs(RequestContext(), Query())
