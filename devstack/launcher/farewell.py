# SPDX-License-Identifier: Apache-2.0
"""What a person can do now: the file to be sourced, and commands to be pasted."""

import shlex
from typing import Final

from devstack.launcher import places
from devstack.launcher.configuration import HOST
from devstack.launcher.stack import Stack

_COMMANDS: Final = """
The service is ready. In a shell of yours:

  . {env}

  # What is there, asked as an administrator; the headers stand in for Keystone.
  curl -s -H 'X-User-Id: me' -H 'X-Project-Id: lab' -H 'X-Roles: admin,member,reader' \\
    $ACCELERATOR_ENDPOINT/v2/devices | python -m json.tool

  # The same, and a device profile, with the client of OpenStack.
  export OS_AUTH_TYPE=admin_token OS_TOKEN=admin OS_ENDPOINT=$ACCELERATOR_ENDPOINT/v2
  openstack accelerator device list
  openstack accelerator device profile create my-gpu \\
    --group resources:PGPU=1,trait:CUSTOM_NVIDIA_1EB8=required
  openstack accelerator arq create my-gpu

  # What Placement was told.
  curl -s -H 'X-Auth-Token: admin' \\
    "$PLACEMENT_ENDPOINT/resource_providers" | python -m json.tool

  # What each driver makes of each function of the host, and why.
  cyborg-lite-agent discover

  # How the daemons are.
  cyborg-lite-status

Logs are in {logs}; this host is called {host}.
"""


def write_env(stack: Stack) -> None:
    """The file that a shell sources."""
    values = {
        'ACCELERATOR_ENDPOINT': stack.accelerator.endpoint,
        'PLACEMENT_ENDPOINT': stack.placement.endpoint,
        'CYBORG_LITE_CONFIG': str(places.CONFIG),
        'NOVA_EVENTS': str(places.NOVA_EVENTS),
    }
    lines = [f'export {name}={shlex.quote(value)}' for name, value in values.items()]
    lines.append(f'export PATH={shlex.quote(str(places.BIN))}:"$PATH"')
    places.ENV.write_text('\n'.join([*lines, '']))


def show_commands() -> None:
    env = shlex.quote(str(places.ENV))
    print(_COMMANDS.format(env=env, logs=places.LOGS, host=HOST), flush=True)
