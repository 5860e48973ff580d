# SPDX-License-Identifier: Apache-2.0
"""Next steps for the user: a file to source, and example commands."""

import shlex
from typing import Final

from devstack.launcher import paths
from devstack.launcher.configuration import HOST
from devstack.launcher.stack import Stack

_COMMANDS: Final = """
The service is ready. In another shell run:

  . {env}

  # List the devices as an administrator. The headers replace a Keystone token.
  curl -s -H 'X-User-Id: me' -H 'X-Project-Id: lab' -H 'X-Roles: admin,member,reader' \\
    $ACCELERATOR_ENDPOINT/v2/devices | python -m json.tool

  # List the devices and create a device profile with the OpenStack client.
  export OS_AUTH_TYPE=admin_token OS_TOKEN=admin OS_ENDPOINT=$ACCELERATOR_ENDPOINT/v2
  openstack accelerator device list
  openstack accelerator device profile create my-gpu \\
    --group resources:PGPU=1,trait:CUSTOM_NVIDIA_1EB8=required
  openstack accelerator arq create my-gpu

  # List the resource providers in Placement.
  curl -s -H 'X-Auth-Token: admin' \\
    "$PLACEMENT_ENDPOINT/resource_providers" | python -m json.tool

  # Show the result of each driver for each PCI function, with the reason.
  cyborg-lite-agent discover

  # Show the state of the daemons and jobs.
  cyborg-lite-status

Logs: {logs}. Name of this host: {host}.
"""


def write_env(stack: Stack) -> None:
    """Write the file of environment variables for a shell."""
    values = {
        'ACCELERATOR_ENDPOINT': stack.accelerator.endpoint,
        'PLACEMENT_ENDPOINT': stack.placement.endpoint,
        'CYBORG_LITE_CONFIG': str(paths.CONFIG),
        'NOVA_EVENTS': str(paths.NOVA_EVENTS),
    }
    lines = [f'export {name}={shlex.quote(value)}' for name, value in values.items()]
    lines.append(f'export PATH={shlex.quote(str(paths.BIN))}:"$PATH"')
    paths.ENV.write_text('\n'.join([*lines, '']))


def show_commands() -> None:
    """Print example commands."""
    env = shlex.quote(str(paths.ENV))
    print(_COMMANDS.format(env=env, logs=paths.LOGS, host=HOST), flush=True)
