# SPDX-License-Identifier: Apache-2.0
"""Calls about inheritance, to conductors of this and of an earlier release."""

from datetime import UTC, datetime
from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.model.device_profiles import (
    DeviceProfile,
    Inheritance,
    ProfileChange,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext

GROUP = {'resources:PGPU': '1'}
PLAIN = DeviceProfile('u', 'p', None, (GROUP,), datetime(2026, 11, 21, tzinfo=UTC))
CHILD = DeviceProfile(
    'v', 'q', None, (GROUP,), PLAIN.created_at, inheritance=Inheritance('u', 'p')
)
CONTEXT = RequestContext()


class Conductor:
    """Conductor that records the versions of the calls."""

    def __init__(self, *, is_earlier: bool) -> None:
        self.versions: list[str] = []
        self._is_earlier = is_earlier

    def call(
        self, context: RequestContext, method: str, /, *, since: str, **arguments: Any
    ) -> Any:
        self.versions.append(since)
        if self._is_earlier and since == '1.19':
            error = oslo_messaging.UnsupportedVersion(since)
            raise ServiceUnavailable(what='conductor') from error
        if method == 'change_device_profile':
            return wire.dump(PLAIN)
        return wire.dump([CHILD if 'parents' in arguments else PLAIN])


def connect(monkeypatch: pytest.MonkeyPatch, conductor: Conductor) -> ConductorAPI:
    monkeypatch.setattr(
        'cyborg_lite.rpc.conductor.Caller', lambda *_arguments: conductor
    )
    return ConductorAPI(None)


def test_parents_are_requested_from_present_conductor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conductor = Conductor(is_earlier=False)
    client = connect(monkeypatch, conductor)
    assert client.list_device_profiles(CONTEXT, Query(), parents=True) == (CHILD,)
    assert client.list_device_profiles(CONTEXT, Query()) == (PLAIN,)
    assert conductor.versions == ['1.19', '1.0']


def test_earlier_conductor_lists_profiles_without_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conductor = Conductor(is_earlier=True)
    client = connect(monkeypatch, conductor)
    assert client.list_device_profiles(CONTEXT, Query(), parents=True) == (PLAIN,)
    assert conductor.versions == ['1.19', '1.0']


def test_earlier_conductor_never_ignores_inheritance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conductor = Conductor(is_earlier=True)
    client = connect(monkeypatch, conductor)
    client.create_device_profiles(CONTEXT, [PLAIN])
    with pytest.raises(ServiceUnavailable):
        client.create_device_profiles(CONTEXT, [PLAIN, CHILD])
    change = ProfileChange(('extends',), extends='p')
    for generation in (None, 3):
        with pytest.raises(ServiceUnavailable):
            client.change_device_profile(CONTEXT, 'v', change, generation=generation)
    client.change_device_profile(CONTEXT, 'u', ProfileChange(('name',), name='x'))
    assert conductor.versions == ['1.0', '1.19', '1.19', '1.19', '1.0']
