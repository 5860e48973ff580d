# SPDX-License-Identifier: Apache-2.0
"""Effect of a device on ARQs and instances, if it is lost or put in maintenance."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceImpact:
    """An ARQ that uses a device, and the instance that it belongs to."""

    hostname: str
    address: str  # control address of the device
    device_uuid: str
    model: str
    handle: str  # key of the attach handle
    arq_uuid: str
    instance_uuid: str | None
    project_id: str | None
    device_profile_name: str
    loss: str = ''  # why the device cannot be used; empty: it works
