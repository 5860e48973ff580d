# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage agent``: identities and message keys of agents."""

from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd.support import database, message_keys
from cyborg_lite.cmd.support.parsers import add_command, add_group
from cyborg_lite.db.inventory import agents
from cyborg_lite.rpc.security.keys import Peer, Role, derive_key


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    commands = add_group(parsers, 'agent', 'manage the agents on the hosts')
    forget = add_command(
        commands,
        'forget-identity',
        'let a reinstalled host replace its agent although that agent counts as up',
    )
    # The name `host` is taken by an option of this service.
    forget.add_argument('of_host', metavar='HOST')
    forget.set_defaults(run=_forget_identity)
    secret = add_command(
        commands, 'secret', 'create the secret of the conductors, if there is none'
    )
    secret.set_defaults(run=_create_secret)
    key = add_command(commands, 'key', 'print the message key of a host')
    key.add_argument('of_host', metavar='HOST', help='[DEFAULT] host of the agent')
    key.set_defaults(run=_print_key)
    api_key = add_command(commands, 'api-key', 'print the message key of the API')
    api_key.set_defaults(run=_print_api_key)


def _create_secret(conf: cfg.ConfigOpts) -> int:
    path = conf.conductor.agent_key_secret_file
    if message_keys.create_secret(conf):
        print(
            f'Created {path}. Copy it to all hosts with a conductor, and nowhere else.'
        )
    else:
        print(f'{path} exists.')
    return 0


def _print_key(conf: cfg.ConfigOpts) -> int:
    peer = Peer(Role.AGENT, conf.command.of_host)
    print(derive_key(message_keys.read_secret(conf), peer))
    return 0


def _print_api_key(conf: cfg.ConfigOpts) -> int:
    print(derive_key(message_keys.read_secret(conf), Peer(Role.API)))
    return 0


def _forget_identity(conf: cfg.ConfigOpts) -> int:
    host = conf.command.of_host
    with database.open_database(conf) as db:
        forgotten = db.write(agents.forget_identity, host)
    if not forgotten:
        print(f'Host {host} has no agent with an identity.')
        return 1
    print(f'The next agent that sends a heartbeat is the agent of host {host}.')
    return 0
