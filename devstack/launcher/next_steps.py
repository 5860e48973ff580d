# SPDX-License-Identifier: Apache-2.0
"""Next steps for the user: a file to source, and example commands."""

import shlex
import uuid
from typing import Final

from devstack.launcher import paths
from devstack.launcher.accelerators import list_accelerators
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
{kernel}
Logs: {logs}. Name of this host: {host}.
"""

_KERNEL: Final = """
  # Bind a device. The host has an emulated kernel, so the device is prepared.
  openstack accelerator device profile create my-device \\
    --group resources:{resource_class}=1,trait:{trait}=required
  ARQ=$(openstack accelerator arq create my-device -f value -c uuid)
  curl -s -X PATCH -H 'Content-Type: application/json' -H 'X-User-Id: me' \\
    -H 'X-Project-Id: lab' -H 'X-Roles: admin,member,reader' \\
    -H 'X-Service-Roles: service' \\
    $ACCELERATOR_ENDPOINT/v2/accelerator_requests -d '{{"'$ARQ'": [
    {{"op": "add", "path": "/hostname", "value": "{host}"}},
    {{"op": "add", "path": "/instance_uuid", "value": "{instance}"}},
    {{"op": "add", "path": "/device_rp_uuid", "value": "{provider}"}}]}}'
  openstack accelerator arq show $ARQ

  # Reboot the host. The ARQs are printed before and after.
  ./devstack/standalone.sh --reboot-host
"""


def write_env(stack: Stack) -> None:
    """Write the file of environment variables for a shell."""
    values = {
        'ACCELERATOR_ENDPOINT': stack.accelerator.endpoint,
        'PLACEMENT_ENDPOINT': stack.placement.endpoint,
        'CYBORG_LITE_CONFIG': str(paths.CONFIG),
        'NOVA_EVENTS': str(paths.NOVA_EVENTS),
        # With this microversion the OpenStack client lists the status of devices.
        'OS_ACCELERATOR_DEFAULT_MICROVERSION': '2.3',
    }
    lines = [f'export {name}={shlex.quote(value)}' for name, value in values.items()]
    lines.append(f'export PATH={shlex.quote(str(paths.BIN))}:"$PATH"')
    paths.ENV.write_text('\n'.join([*lines, '']))


def show_commands(stack: Stack) -> None:
    """Print example commands."""
    env = shlex.quote(str(paths.ENV))
    kernel = _format_binding(stack) if stack.has_sample_host else ''
    text = _COMMANDS.format(env=env, logs=paths.LOGS, host=HOST, kernel=kernel)
    print(text, flush=True)


def _format_binding(stack: Stack) -> str:
    """Return the commands that bind a device, a vGPU if there is one."""
    accelerators = [
        item
        for item in list_accelerators(stack.placement)
        if item.is_usable and item.name != f'{HOST}_FakeDevice'
    ]
    if not accelerators:
        return ''
    device = max(accelerators, key=lambda item: item.resource_class == 'VGPU')
    return _KERNEL.format(
        resource_class=device.resource_class,
        trait=device.own_trait,
        host=HOST,
        instance=uuid.uuid4(),
        provider=device.uuid,
    )
