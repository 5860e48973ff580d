# SPDX-License-Identifier: Apache-2.0
"""While the bus is away every host is silent, and none of them is down."""

from contextlib import ExitStack
from pathlib import Path

from tests.chaos.broker import own_node
from tests.chaos.kit import HurtCloud, running

PATIENCE = 6  # seconds until a silent daemon is down; agents speak every second

# Who is heard again only after that was away for too long, and is rightly down.
AT_ONCE = {
    'oslo_messaging_rabbit': {
        'rabbit_retry_interval': 1,
        'rabbit_retry_backoff': 0,
        'rabbit_interval_max': 1,
    }
}


def ages(cloud: HurtCloud) -> dict[str, float]:
    """Seconds since the last heartbeat, by name of daemon."""
    age = "(julianday('now') - julianday(heartbeat_at)) * 86400"
    return dict(cloud.rows(f'SELECT binary, {age} FROM services'))


def test_a_conductor_that_could_not_hear_calls_nobody_down(tmp_path: Path) -> None:
    connection = f'sqlite:///{tmp_path}/db.sqlite'
    with ExitStack() as opened:
        node = opened.enter_context(own_node(tmp_path))
        cloud = HurtCloud(tmp_path, node.url, connection)
        cloud.configure(AT_ONCE)
        opened.enter_context(running(cloud))
        options = {'conductor': {'agent_down_after': PATIENCE}}
        conductor = cloud.begin('conductor', 'conductor', [], options)
        conductor.until(lambda: 'Ready.' in cloud.log(conductor))
        agent = 'cyborg-lite-agent'
        cloud.until(lambda: agent in ages(cloud), 'the agent is heard')
        # Longer than it takes to judge, by a conductor that has listened long enough.
        cloud.until(lambda: started(cloud) > 2 * PATIENCE, 'it has listened')
        node.end()
        cloud.until(lambda: ages(cloud)[agent] > 2 * PATIENCE, 'nobody is heard')
        node.start()
        cloud.until(lambda: ages(cloud)[agent] < PATIENCE, 'the agent is heard again')
        assert 'is down' not in cloud.log(conductor)
        # It judges still: one that falls silent while it can hear.
        (child,) = (one for one in cloud.children if one.log.name == 'agent.log')
        child.kill()
        cloud.until(lambda: 'is down' in cloud.log(conductor), 'the agent is down')


def started(cloud: HurtCloud) -> float:
    """Seconds since the conductor was first there."""
    age = "(julianday('now') - julianday(started_at)) * 86400"
    query = f"SELECT {age} FROM services WHERE binary = 'cyborg-lite-conductor'"
    rows = cloud.rows(query)
    return float(rows[0][0]) if rows else 0.0
