# SPDX-License-Identifier: Apache-2.0
"""What a guest has open while it runs with a device of VFIO."""

from cyborg_lite.drivers.sysfs import Host


def device_files(host: Host, directory: str) -> tuple[str, ...]:
    """The files below /dev that a guest opens to have a device, by its directory.

    The group has one, and on kernels that have them so has the device itself.
    """
    group = host.target(f'{directory}/iommu_group')
    of_device = host.names(f'{directory}/vfio-dev')
    return (
        *([f'/dev/vfio/{group}'] if group else []),
        *(f'/dev/vfio/devices/{name}' for name in of_device),
    )
