# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage agent``: identities and message keys of agents."""

from dataclasses import replace
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database, message_keys
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_group
from cyborg_lite.db.inventory import agents
from cyborg_lite.rpc.security.keys import Peer, Role

_COPY: Final = 'Copy the file to all hosts with a conductor'


def add_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'agent', 'manage the agents on the hosts')
    forget = add_command(
        commands,
        'forget-identity',
        'let a reinstalled host replace its agent although that agent counts as up',
        _forget_identity,
    )
    # The name `host` is taken by an option of this service.
    forget.add_argument('of_host', metavar='HOST')
    text = 'create the secret of the conductors, if there is none'
    add_command(commands, 'secret', text, _create_secret)
    text = 'add a secret; the previous one stays valid until `drop-secret`'
    add_command(commands, 'add-secret', text, _add_secret)
    text = 'end the validity of the previous secret'
    add_command(commands, 'drop-secret', text, _drop_secret)
    text = 'end the validity of the message key of one host'
    revoke = add_command(commands, 'revoke-key', text, _revoke_key)
    revoke.add_argument('of_host', metavar='HOST', help='[DEFAULT] host of the agent')
    key = add_command(commands, 'key', 'print the message key of a host', _print_key)
    key.add_argument('of_host', metavar='HOST', help='[DEFAULT] host of the agent')
    text = 'print the message key of the API'
    add_command(commands, 'api-key', text, _print_key).set_defaults(of_host=None)


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
    host = conf.command.of_host
    peer = Peer(Role.API) if host is None else Peer(Role.AGENT, host)
    # A daemon signs with the first key of its file, and all conductors have the newest.
    for key in reversed(message_keys.read_secrets(conf).derive_keys(peer)):
        print(key)
    return 0


def _add_secret(conf: cfg.ConfigOpts) -> int:
    keys = message_keys.read_secrets(conf)
    if len(keys.secrets) > 1:
        print('There are two secrets: end the change with `drop-secret` first.')
        return 1
    new = *keys.secrets, message_keys.generate_secret()
    message_keys.write_secrets(conf, replace(keys, secrets=new))
    print(f'Both secrets are valid. {_COPY}, then install the new keys of all daemons.')
    return 0


def _drop_secret(conf: cfg.ConfigOpts) -> int:
    keys = message_keys.read_secrets(conf)
    if len(keys.secrets) == 1:
        print('There is one secret: add another one with `add-secret` first.')
        return 1
    message_keys.write_secrets(conf, replace(keys, secrets=keys.secrets[1:]))
    print(f'The previous secret is not valid here any more. {_COPY}.')
    return 0


def _revoke_key(conf: cfg.ConfigOpts) -> int:
    host = conf.command.of_host
    if not host or host.split() != [host]:
        print('The name of the host has a space.')
        return 1
    keys = message_keys.read_secrets(conf)
    revocations = {**keys.revocations, host: keys.revocations.get(host, 0) + 1}
    message_keys.write_secrets(conf, replace(keys, revocations=revocations))
    print(f'The key of {host} is not valid here any more. {_COPY}.')
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
