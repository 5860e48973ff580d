# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage agent``: identities of agents."""

from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd import database
from cyborg_lite.db import agent_identities


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add the commands ``agent ...``."""
    group = parsers.add_parser('agent', help='manage the agents on the hosts')
    commands = group.add_subparsers(required=True, title='commands')
    forget = commands.add_parser(
        'forget-identity',
        help='let a reinstalled host replace its agent although that seems alive',
    )
    # The name `host` is taken by an option of this service.
    forget.add_argument('of_host', metavar='HOST')
    forget.set_defaults(run=_forget_identity)


def _forget_identity(conf: cfg.ConfigOpts) -> int:
    host = conf.command.of_host
    with database.open_database(conf) as db:
        forgotten = db.write(agent_identities.forget_identity, host)
    if not forgotten:
        print(f'Host {host} has no agent with an identity.')
        return 1
    print(f'The next agent that sends a heartbeat speaks for host {host}.')
    return 0
