# SPDX-License-Identifier: Apache-2.0
"""Shell and ports of an Intel FPGA card, from the files of dfl or of older drivers.

Kernel documents: fpga/dfl.rst, ABI/testing/sysfs-platform-dfl-fme and
ABI/testing/sysfs-platform-dfl-port.
"""

import re
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.model.bitstreams.bitstreams import normalize_id

_NUMBER: Final = re.compile(r'\.(\d+)$')
# States of an FPGA manager without a load in progress and without an error.
_IDLE: Final = frozenset({'', 'unknown', 'power up', 'operating'})
_OPAE_CLASS: Final = 'fpga'  # directory of the older drivers, shipped with OPAE


@dataclass(frozen=True, slots=True)
class IntelPort:
    """A port with its region. Ids are 32 hex digits; empty: unknown."""

    number: int
    interface_id: str = ''
    function_id: str = ''
    is_readable: bool = False  # the id of the loaded function can be read
    fault: str = ''  # empty: the port works
    vf_address: str | None = None  # VF that has the port; None: the PF has it


@dataclass(frozen=True, slots=True)
class IntelShell:
    """The static part of a card."""

    ports: tuple[IntelPort, ...]
    identity: str = ''  # its id and the ids of its interfaces, separated by spaces
    version: str = ''


def read_shell(function: PciFunction) -> IntelShell | None:
    """Read the shell of a physical function; return None without a known driver."""
    for region in function.names('fpga_region'):
        base = f'fpga_region/{region}'
        for management in list_numbered(function, base, 'dfl-fme'):
            return _read_dfl(function, base, management)
    for device in function.names(_OPAE_CLASS):
        base = f'{_OPAE_CLASS}/{device}'
        for management in list_numbered(function, base, 'intel-fpga-fme'):
            return _read_opae(function, base, management)
    return None


def _read_dfl(function: PciFunction, base: str, management: str) -> IntelShell:
    own_ports = {
        read_port_number(function, port): port
        for port in list_numbered(function, base, 'dfl-port')
    }
    unassigned = iter(function.virtfns)
    fault = _find_manager_fault(function, management)
    ports = []
    regions = list_numbered(function, management, 'dfl-fme-region')
    for number, path in enumerate(regions):
        if number in own_ports:
            vf_address = None
            afu = function.text(f'{own_ports[number]}/afu_id')
        else:
            # A port that the PF has released belongs to the next virtual function.
            vf_address = next(unassigned, None)
            afu = _read_vf_function(function, vf_address)
        port = IntelPort(
            number,
            interface_id=_read_interface(function, path),
            function_id=normalize_id(afu or ''),
            is_readable=afu is not None,
            fault=fault,
            vf_address=vf_address,
        )
        ports.append(port)
    return _build_shell(function, management, ports)


def _read_opae(function: PciFunction, base: str, management: str) -> IntelShell:
    interface = normalize_id(function.text(f'{management}/pr/interface_id') or '')
    ports = []
    for number, path in enumerate(list_numbered(function, base, 'intel-fpga-port')):
        afu = function.text(f'{path}/afu_id')
        ports.append(
            IntelPort(number, interface, normalize_id(afu or ''), afu is not None)
        )
    virtual = function.virtfns[:1]
    if not ports and virtual:
        ports.append(IntelPort(0, interface, vf_address=virtual[0]))
    return _build_shell(function, management, ports)


def _build_shell(
    function: PciFunction, management: str, ports: list[IntelPort]
) -> IntelShell:
    identity = function.text(f'{management}/bitstream_id') or ''
    interfaces = dict.fromkeys(port.interface_id for port in ports if port.interface_id)
    return IntelShell(
        ports=tuple(ports),
        identity=' '.join(filter(None, (normalize_id(identity), *interfaces))),
        version=_parse_version(identity),
    )


def _parse_version(identity: str) -> str:
    """Return the version in the upper 16 of 64 bits: 8 major, 4 minor, 4 patch (OPAE).

    :returns: empty if the identity is not a hexadecimal number of 64 bits
    """
    try:
        top = int(identity, 16) >> 48
    except ValueError:
        return ''
    if top > 0xFFFF:
        return ''
    return f'{top >> 8}.{top >> 4 & 0xF}.{top & 0xF}'


def _find_manager_fault(function: PciFunction, management: str) -> str:
    """Return the error of the FPGA manager; empty if there is none.

    The states are those of the kernel document ABI/testing/sysfs-class-fpga-manager.
    """
    for manager in list_numbered(function, management, 'dfl-fme-mgr'):
        for name in function.names(f'{manager}/fpga_manager'):
            directory = f'{manager}/fpga_manager/{name}'
            state = function.text(f'{directory}/state') or ''
            status = function.text(f'{directory}/status') or ''
            if state not in _IDLE or status:
                return f'{state}: {" ".join(status.split())}'.strip(': ')
    return ''


def _read_interface(function: PciFunction, path: str) -> str:
    for name in function.names(f'{path}/fpga_region'):
        interface_id = function.text(f'{path}/fpga_region/{name}/compat_id')
        if interface_id:
            return normalize_id(interface_id)
    return ''


def _read_vf_function(function: PciFunction, vf_address: str | None) -> str | None:
    """Return the function id in the port of a VF, or None if it cannot be read."""
    if vf_address is None:
        return None
    virtual = PciFunction(function.host, vf_address)
    for region in virtual.names('fpga_region'):
        for port in list_numbered(virtual, f'fpga_region/{region}', 'dfl-port'):
            return virtual.text(f'{port}/afu_id')
    return None


def read_port_number(function: PciFunction, port: str) -> int:
    """Return the number of a port, which is also the number of its region."""
    number = function.text(f'{port}/id') or ''
    return int(number) if number.isdecimal() else 0


def list_numbered(function: PciFunction, base: str, kind: str) -> list[str]:
    """Return the paths ``<kind>.<n>`` in a directory, in order of their numbers."""
    entries = [
        (int(number[1]), name)
        for name in function.names(base)
        if name.startswith(f'{kind}.') and (number := _NUMBER.search(name))
    ]
    return [f'{base}/{name}' for _, name in sorted(entries)]
