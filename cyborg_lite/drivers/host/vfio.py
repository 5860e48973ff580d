# SPDX-License-Identifier: Apache-2.0
"""Device files of VFIO, which a guest has open while it uses a device."""

from cyborg_lite.drivers.host.sysfs import Host


def device_files(host: Host, directory: str) -> tuple[str, ...]:
    """Return the files below /dev that a guest opens to use a device.

    There is one file for the IOMMU group and, on kernels with VFIO device cdevs, one
    for the device (kernel: driver-api/vfio.rst).

    :param directory: sysfs directory of the device
    """
    group = host.target(f'{directory}/iommu_group')
    cdevs = host.names(f'{directory}/vfio-dev')
    return (
        *([f'/dev/vfio/{group}'] if group else []),
        *(f'/dev/vfio/devices/{name}' for name in cdevs),
    )
