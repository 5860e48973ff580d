# SPDX-License-Identifier: Apache-2.0
"""Hosts are not marked down while the message bus is unreachable."""

from contextlib import ExitStack
from pathlib import Path

from tests.chaos.broker import own_node
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud

PATIENCE = 6  # agent_down_after; agents send a heartbeat every second

# Daemons that reconnect after a longer time, and may be marked down.
AT_ONCE = {
    'oslo_messaging_rabbit': {
        'rabbit_retry_interval': 1,
        'rabbit_retry_backoff': 0,
        'rabbit_interval_max': 1,
    }
}


def ages(cloud: FaultyCloud) -> dict[str, float]:
    """Return the seconds since the last heartbeat by daemon."""
    age = "(julianday('now') - julianday(heartbeat_at)) * 86400"
    return dict(cloud.rows(f'SELECT binary, {age} FROM services'))


def test_liveness_after_outage_marks_no_service_down(tmp_path: Path) -> None:
    connection = f'sqlite:///{tmp_path}/db.sqlite'
    with ExitStack() as opened:
        node = opened.enter_context(own_node(tmp_path))
        cloud = FaultyCloud(tmp_path, node.url, connection)
        cloud.configure(AT_ONCE)
        opened.enter_context(run_cloud(cloud))
        options = {'conductor': {'agent_down_after': PATIENCE}}
        conductor = cloud.begin('conductor', 'conductor', [], options)
        conductor.until(lambda: 'Ready.' in cloud.log(conductor))
        agent = 'cyborg-lite-agent'
        cloud.until(lambda: agent in ages(cloud), 'the agent is up')
        # Longer than a conductor that has listened long enough needs to decide.
        cloud.until(lambda: uptime(cloud) > 2 * PATIENCE, 'the conductor has waited')
        node.end()
        cloud.until(lambda: ages(cloud)[agent] > 2 * PATIENCE, 'all daemons are down')
        node.start()
        cloud.until(lambda: ages(cloud)[agent] < PATIENCE, 'the agent is up again')
        assert 'is down' not in cloud.log(conductor)
        # The conductor still marks an agent down that stops while the bus works.
        (child,) = (
            child_process
            for child_process in cloud.children
            if child_process.log.name == 'agent.log'
        )
        child.kill()
        cloud.until(lambda: 'is down' in cloud.log(conductor), 'the agent is down')


def uptime(cloud: FaultyCloud) -> float:
    """Return the seconds since the conductor first started."""
    age = "(julianday('now') - julianday(started_at)) * 86400"
    query = f"SELECT {age} FROM services WHERE binary = 'cyborg-lite-conductor'"
    rows = cloud.rows(query)
    return float(rows[0][0]) if rows else 0.0
