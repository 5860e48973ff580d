# SPDX-License-Identifier: Apache-2.0
"""Events as Nova gets them, through a receiver that judges them as Nova does."""

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from oslo_config import cfg

from cyborg_lite.clients.nova import BoundEvent, Nova
from cyborg_lite.conf import nova as section
from cyborg_lite.exceptions import RemoteError, ServiceUnavailable
from tests.fakes.nova import FakeNova, Rules


@pytest.fixture
def fake() -> Iterator[FakeNova]:
    with FakeNova() as fake:
        yield fake


def nova_at(endpoint: str | None, patience: int = 0) -> Nova:
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=section.GROUP)
    conf.set_override('connect_retries', patience, group=section.GROUP)
    conf.set_override('connect_retry_delay', 0.1, group=section.GROUP)
    return Nova.configured(conf)


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        number: int = listener.getsockname()[1]
    return number


def event(*, succeeded: bool = True) -> BoundEvent:
    return BoundEvent(str(uuid4()), str(uuid4()), succeeded)


def test_all_events_leave_in_one_post(fake: FakeNova) -> None:
    good, bad = event(), event(succeeded=False)
    outcomes = nova_at(fake.endpoint).post_events([good, bad])
    assert [(outcome.event, outcome.code) for outcome in outcomes] == [
        (good, 200),
        (bad, 200),
    ]
    assert len(fake.posts) == 1
    assert fake.events == [
        {
            'name': 'accelerator-request-bound',
            'server_uuid': good.instance_uuid,
            'tag': good.arq_uuid,
            'status': 'completed',
        },
        {
            'name': 'accelerator-request-bound',
            'server_uuid': bad.instance_uuid,
            'tag': bad.arq_uuid,
            'status': 'failed',
        },
    ]


def test_the_microversion_is_the_one_that_knows_the_event(fake: FakeNova) -> None:
    nova_at(fake.endpoint).post_events([event()])
    assert fake.posts[0].headers['OpenStack-API-Version'] == 'compute 2.82'


def test_each_event_has_its_own_outcome(fake: FakeNova) -> None:
    taken, hostless, unknown = event(), event(), event()
    fake.rules.codes = {hostless.instance_uuid: 422, unknown.instance_uuid: 404}
    outcomes = nova_at(fake.endpoint).post_events([taken, hostless, unknown])
    assert [outcome.code for outcome in outcomes] == [200, 422, 404]


def test_events_of_one_instance_are_told_apart_by_their_tag(fake: FakeNova) -> None:
    instance = str(uuid4())
    first, second = (BoundEvent(instance, str(uuid4()), True) for _ in range(2))
    fake.rules.codes = {second.arq_uuid: 422}
    outcomes = nova_at(fake.endpoint).post_events([first, second])
    assert [outcome.code for outcome in outcomes] == [200, 422]


def test_a_nova_in_trouble_is_to_be_asked_again(fake: FakeNova) -> None:
    fake.rules.failures = 1
    nova = nova_at(fake.endpoint)
    with pytest.raises(ServiceUnavailable, match='Nova does not answer'):
        nova.post_events([event()])
    assert fake.events == []
    assert nova.post_events([event()])[0].code == 200


def test_a_nova_that_is_not_there_is_to_be_asked_again(fake: FakeNova) -> None:
    endpoint = 'http://127.0.0.1:1'
    with pytest.raises(ServiceUnavailable):
        nova_at(endpoint).post_events([event()])


def test_a_request_that_nova_refuses_is_an_error_that_says_why(fake: FakeNova) -> None:
    malformed = BoundEvent('not-a-uuid', str(uuid4()), True)
    with pytest.raises(RemoteError, match='Nova answered 400: Invalid input'):
        nova_at(fake.endpoint).post_events([malformed])


def test_no_events_no_post(fake: FakeNova) -> None:
    assert nova_at(fake.endpoint).post_events([]) == ()
    assert fake.posts == []


def test_unknown_instances_alone_raise_suspicion_once(
    fake: FakeNova, caplog: pytest.LogCaptureFixture
) -> None:
    events = [event(), event()]
    fake.rules.codes = {one.instance_uuid: 404 for one in events}
    nova = nova_at(fake.endpoint)
    for _ in range(3):
        nova.post_events(events)
    assert caplog.text.count('admin role') == 1


def test_a_known_instance_among_unknown_ones_raises_none(
    fake: FakeNova, caplog: pytest.LogCaptureFixture
) -> None:
    known, unknown = event(), event()
    fake.rules.codes = {unknown.instance_uuid: 404}
    nova_at(fake.endpoint).post_events([known, unknown])
    assert 'admin role' not in caplog.text


def test_a_404_for_the_whole_request_means_every_event(fake: FakeNova) -> None:
    """So answer releases that know none of the instances."""
    fake.rules.failures, fake.rules.failure = 1, 404
    outcomes = nova_at(fake.endpoint).post_events([event(), event()])
    assert [outcome.code for outcome in outcomes] == [404, 404]


def test_without_configuration_events_are_dropped_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nova = nova_at(None)
    with caplog.at_level(logging.DEBUG):
        outcomes = nova.post_events([event()]) + nova.post_events([event()])
    assert [outcome.code for outcome in outcomes] == [None, None]
    assert caplog.text.count('are dropped') == 1
    assert caplog.text.count('Event dropped') == 2


def test_the_receiver_keeps_a_record_of_what_it_answered(tmp_path: Path) -> None:
    record = tmp_path / 'events.jsonl'
    sent = event()
    with FakeNova(rules=Rules(record=record, failures=1)) as fake:
        nova = nova_at(fake.endpoint)
        with pytest.raises(ServiceUnavailable):
            nova.post_events([sent])
        nova.post_events([sent])
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line['tag'] for line in lines] == [sent.arq_uuid]


def test_the_receiver_runs_by_itself(tmp_path: Path) -> None:
    record, port, sent = tmp_path / 'events.jsonl', free_port(), event()
    command = [sys.executable, '-m', 'tests.fakes.nova']
    command += ['--port', str(port), '--record', str(record), '--fail-first', '1']
    with subprocess.Popen(command) as process:
        try:
            nova = nova_at(f'http://127.0.0.1:{port}/v2.1', patience=100)
            with pytest.raises(ServiceUnavailable):
                nova.post_events([sent])
            assert nova.post_events([sent])[0].code == 200
        finally:
            process.terminate()
    assert json.loads(record.read_text())['tag'] == sent.arq_uuid


# --- which servers there are ----------------------------------------------------------


def servers(number: int) -> dict[str, str | None]:
    return {str(uuid4()): 'compute-1' for _ in range(number)}


def test_a_server_that_nova_does_not_know_is_missing(fake: FakeNova) -> None:
    fake.rules.servers = servers(2)
    gone = str(uuid4())
    asked = [*fake.rules.servers, gone]
    assert nova_at(fake.endpoint).missing(asked) == frozenset({gone})
    assert len(fake.gets) == 4


def test_many_servers_are_looked_up_by_the_page(fake: FakeNova) -> None:
    fake.rules.servers = servers(250)
    fake.rules.largest_page = 100
    gone = frozenset({str(uuid4()), str(uuid4())})
    assert nova_at(fake.endpoint).missing({*fake.rules.servers, *gone}) == gone
    # Three pages, the empty one that ends them, and each that was in none.
    assert len(fake.gets) == 4 + 2


def test_who_may_not_see_all_servers_calls_none_missing(fake: FakeNova) -> None:
    """To a user who is no admin every server of others is not found."""
    fake.rules.servers = servers(1)
    fake.rules.sees_all = False
    with pytest.raises(RemoteError, match='get_all_tenants'):
        nova_at(fake.endpoint).missing(fake.rules.servers)


@pytest.mark.parametrize('number', [1, 101])
def test_a_nova_that_fails_gives_no_verdict(fake: FakeNova, number: int) -> None:
    fake.rules.failures = 1
    with pytest.raises(ServiceUnavailable):
        nova_at(fake.endpoint).missing(servers(number))


def test_where_there_is_no_nova_nothing_is_known() -> None:
    nova = nova_at(None)
    assert nova.missing(['x']) is None
    assert nova.is_placed('x') is None


def test_a_server_is_placed_while_it_is_on_a_host(fake: FakeNova) -> None:
    here, nowhere, gone = (str(uuid4()) for _ in range(3))
    fake.rules.servers = {here: 'compute-1', nowhere: None}
    nova = nova_at(fake.endpoint)
    assert [nova.is_placed(one) for one in (here, nowhere, gone)] == [
        True,
        False,
        False,
    ]
