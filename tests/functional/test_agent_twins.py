# SPDX-License-Identifier: Apache-2.0
"""Two agents with one name: only one of them speaks for the host."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import rabbitmq
from tests.servers.stack import Cloud, lines_of

_REFUSED = 'has another agent, which is running'


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with (
        rabbitmq.virtual_host() as bus,
        Cloud(
            tmp_path,
            transport_url=bus,
            connection=f'sqlite:///{tmp_path}/service.sqlite',
        ) as cloud,
    ):
        cloud.migrate()
        cloud.start('conductor')
        yield cloud


def test_agent_started_twice_exits(cloud: Cloud) -> None:
    cloud.start('agent')
    twin = cloud.begin('twin', 'agent')
    cloud.until(lambda: twin.status is not None)
    assert twin.status == 1
    [line] = lines_of(twin, 'Cannot start')
    assert f'Another cyborg-lite-agent uses {cloud.directory}/agent.' in line


def test_agent_of_same_name_waits_until_first_is_forgotten(cloud: Cloud) -> None:
    first = cloud.start('agent')
    cloud.until(lambda: lines_of(first, 'Reported '))
    state = {'agent': {'state_path': cloud.directory / 'twin'}}
    twin = cloud.begin('twin', 'agent', [], state)
    cloud.until(lambda: lines_of(twin, _REFUSED))
    assert not lines_of(twin, 'Reported ')
    first.kill()
    manage = cloud.begin('manage', 'manage', ['agent', 'forget-identity', cloud.host])
    cloud.until(lambda: manage.status is not None)
    assert manage.status == 0
    cloud.until(lambda: lines_of(twin, 'Reported '))
