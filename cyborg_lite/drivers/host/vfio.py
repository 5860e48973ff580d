# SPDX-License-Identifier: Apache-2.0
"""Use of devices by guests: the device files of VFIO that a guest has open."""

from collections.abc import Iterable

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.errors.drivers import DeviceBusy


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


def find_process(
    writer: Writer, host: Host, card: str, directories: Iterable[str]
) -> int | None:
    """Return the id of a process that has one of the devices open, or None.

    :param card: address of the card that manages the devices
    :param directories: sysfs directories of the devices
    """
    files = [file for item in directories for file in device_files(host, item)]
    return next(iter(writer.holders(card, files)), None) if files else None


def check_closed(writer: Writer, function: PciFunction, card: str = '') -> None:
    """Check that no process has a function open.

    :param card: address of the card that manages the function; empty: the function
    :raises DeviceBusy: a process has
    """
    card = card or function.address
    process = find_process(writer, function.host, card, [function.path('')])
    if process is not None:
        reason = f'it is open in process {process}'
        raise DeviceBusy(address=function.address, reason=reason)


def has_open_functions(writer: Writer, card: PciFunction) -> bool:
    """Return True if any guest has a virtual function of a card open.

    This includes guests that this service does not manage.
    """
    virtual = (PciFunction(card.host, address) for address in card.virtfns)
    directories = (function.path('') for function in virtual)
    return find_process(writer, card.host, card.address, directories) is not None


def check_functions_closed(writer: Writer, card: PciFunction) -> None:
    """Check that no guest has a virtual function of a card open.

    :raises DeviceBusy: a guest has
    """
    if has_open_functions(writer, card):
        reason = 'a guest uses one of its virtual functions'
        raise DeviceBusy(address=card.address, reason=reason)
