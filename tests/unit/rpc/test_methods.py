# SPDX-License-Identifier: Apache-2.0
"""Tests of the methods that are read from the declarations of the interfaces."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import pytest

from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.methods import (
    AGENTS,
    CONDUCTOR,
    HOST,
    SHORT_METHODS,
    Interface,
    Method,
    read_interface,
)
from cyborg_lite.rpc.security.keys import Role
from cyborg_lite.rpc.terms import Terms


class Declaration(Protocol):
    """An interface of three versions."""

    @Terms(added={'color': '1.2', 'size': '1.10'})
    def change(
        self,
        context: RequestContext,
        uuid: str,
        names: Sequence[str] = (),
        *,
        color: str = '',
        size: int | None = None,
    ) -> None:
        """Return nothing."""

    @Terms(since='1.3')
    def read(self, context: RequestContext) -> int:
        """Return a number."""

    def _helper(self) -> None:
        """Be no method of the interface."""


INTERFACE: Final = read_interface('topic', Declaration)
CHANGE: Final = INTERFACE.methods['change']


def test_interface_has_declared_methods_and_newest_version() -> None:
    assert list(INTERFACE.methods) == ['change', 'read']
    assert INTERFACE.version == '1.10'


@pytest.mark.parametrize(
    ('method', 'arguments', 'version'),
    [
        (CHANGE, ['uuid', 'names'], '1.0'),
        (CHANGE, ['uuid', 'color'], '1.2'),
        (CHANGE, ['uuid', 'color', 'size'], '1.10'),
        (INTERFACE.methods['read'], [], '1.3'),
    ],
)
def test_version_is_that_of_the_newest_argument(
    method: Method, arguments: list[str], version: str
) -> None:
    assert method.find_version(arguments) == version


def test_received_arguments_have_their_types() -> None:
    received = CHANGE.load_arguments({'uuid': 'u', 'names': ['a'], 'size': 3})
    assert received == {'uuid': 'u', 'names': ['a'], 'size': 3}


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        ({}, 'lacks uuid'),
        ({'uuid': 'u', 'colour': 'red'}, 'no argument colour'),
        ({'uuid': None}, 'Expected'),
        ({'uuid': 'u', 'names': 'a'}, 'Expected'),
    ],
)
def test_other_arguments_are_refused(arguments: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(MalformedData, match=reason):
        CHANGE.load_arguments(arguments)


def test_host_of_agent_is_no_argument() -> None:
    assert list(AGENTS.methods['prepare'].annotations) == ['handles']
    assert not AGENTS.methods['scan'].annotations


def test_heartbeat_omits_defaults_of_its_details() -> None:
    heartbeat = CONDUCTOR.methods['heartbeat']
    values = ['compute-1', 'd', '1.0']
    assert 'details' not in heartbeat.dump_arguments([*values, HeartbeatDetails()], {})
    arguments = heartbeat.dump_arguments([*values, HeartbeatDetails('boot')], {})
    assert arguments['details'] == {'boot_id': 'boot'}


def test_each_method_of_agents_names_its_host() -> None:
    """The check of the sender compares this argument."""
    of_agents = {
        name: method
        for name, method in CONDUCTOR.methods.items()
        if method.terms.senders == {Role.AGENT}
    }
    assert {'heartbeat', 'report_changes'} < of_agents.keys()
    assert all(next(iter(m.annotations)) == HOST for m in of_agents.values())
    assert {'repeat', 'repeat_without_answer'} == SHORT_METHODS


@pytest.mark.parametrize('interface', [CONDUCTOR, AGENTS])
def test_interface_is_of_the_first_version(interface: Interface) -> None:
    """The first release declares it."""
    assert interface.version == '1.0'
