# SPDX-License-Identifier: Apache-2.0
"""What stands above a method of a controller is done, and in that order."""

from typing import Any, Final

import pytest

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.api.validation import Schema
from cyborg_lite.api.views.link import Link
from cyborg_lite.exceptions import (
    CyborgError,
    Forbidden,
    InvalidInput,
    NotAcceptable,
    ServiceTokenRequired,
)
from tests.unit.api.calls import backing, request
from tests.unit.api.calls import call as called
from tests.unit.api.conversation import ADMIN, MEMBER, NOVA, Client

RULE: Final = 'cyborg:device_profile:create'
LIST: Final = Schema({'type': 'array'})


@requires(RULE)
@since(V2_4, 'Making')
@accepts(arguments=('limit',), newer=('state',), body=LIST)
def make(_controller: Any, call: Call) -> Any:
    return call.arguments, call.body


@requires(RULE, service_for='Binding')
def bind(_controller: Any, call: Call) -> str:
    return 'bound'


@accepts(arguments=('limit',), newer=('state',))
def show(_controller: Any, call: Call) -> dict[str, str]:
    return call.arguments


def sent(path: str, body: Any, headers: dict[str, str] = ADMIN) -> Call:
    return Call(request(path, body, headers, V2_4), backing())


def test_a_method_gets_what_it_accepts() -> None:
    assert make(None, sent('/x?limit=1&state=up', [5])) == (
        {'limit': '1', 'state': 'up'},
        [5],
    )


@pytest.mark.parametrize(
    ('call', 'refusal'),
    [
        (called('/x?y=1', headers=MEMBER, version=V2_3), Forbidden),
        (called('/x?y=1', version=V2_3), NotAcceptable),
        (sent('/x?y=1', {}), InvalidInput),
        (sent('/x', {}), InvalidInput),
    ],
    ids=['the rule', 'the version', 'the arguments', 'the body'],
)
def test_the_first_that_is_wrong_is_told(
    call: Call, refusal: type[CyborgError]
) -> None:
    """Each of the calls has all the faults that come after its first one."""
    with pytest.raises(refusal):
        make(None, call)


def test_what_needs_a_service_is_refused_to_others_whom_the_rule_allows() -> None:
    with pytest.raises(ServiceTokenRequired, match='Binding'):
        bind(None, called(headers=ADMIN))
    service = {**ADMIN, 'X-Service-Roles': NOVA['X-Service-Roles']}
    assert bind(None, called(headers=service)) == 'bound'


def test_a_service_too_must_be_allowed() -> None:
    with pytest.raises(Forbidden):
        bind(None, called(headers=NOVA))


def test_newer_arguments_are_unknown_to_older_clients() -> None:
    assert show(None, called('/x?state=up', version=V2_4)) == {'state': 'up'}
    with pytest.raises(InvalidInput, match='state'):
        show(None, called('/x?state=up', version=V2_3))


def test_the_facts_can_be_read_from_outside() -> None:
    """The API document is made of them."""

    @expose(Link, status=201, accepted=Link, errors=(409,))
    @requires(RULE, service_for='Making')
    @since(V2_4, 'Making')
    @accepts(arguments=('a',), filters=('b',), newer=('c',), body=LIST)
    def post(_controller: Any, call: Call) -> Link:
        return Link()

    facts = {name: getattr(post, name) for name in _FACTS}
    assert facts == _FACTS


_FACTS: Final[dict[str, Any]] = {
    'views': (Link,),
    'status': 201,
    'accepted': Link,
    'errors': (409,),
    'rule': RULE,
    'service_for': 'Making',
    'since': V2_4,
    'arguments': ('a',),
    'filters': ('b',),
    'newer': ('c',),
    'body': LIST,
}


def test_an_answer_is_json_or_nothing_at_all(client: Client) -> None:
    created = client.post(
        '/device_profiles', [{'name': 'dp1', 'groups': [{'resources:FPGA': '1'}]}]
    )
    assert (created.status, created.json['name']) == (201, 'dp1')
    assert created.headers['Content-Type'] == 'application/json'
    deleted = client.delete('/device_profiles/dp1')
    assert (deleted.status, deleted.body) == (204, b'')
    assert 'Content-Type' not in deleted.headers
