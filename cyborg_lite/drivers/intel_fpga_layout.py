# SPDX-License-Identifier: Apache-2.0
"""Where the kernel shows what is in an Intel FPGA card: today's files and older ones.

Kernel: Documentation/fpga/dfl.rst, sysfs-platform-dfl-fme, sysfs-platform-dfl-port.
"""

import re
from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.sysfs import PciFunction
from cyborg_lite.model.bitstreams import normal_id

_NUMBER: Final = re.compile(r'\.(\d+)$')
# Of an FPGA manager that nobody loads anything with, and whose last load went well.
_AT_REST: Final = frozenset({'', 'unknown', 'power up', 'operating'})
_OLD: Final = 'fpga'  # the class of the drivers that OPAE brought along


@dataclass(frozen=True, slots=True)
class Port:
    """A region and the way into it. Ids are 32 hex digits; empty: not told."""

    number: int
    interface_id: str = ''
    function_id: str = ''
    readable: bool = False  # whether anybody can see now what function it holds
    trouble: str = ''
    virtual: str | None = None  # address of the VF that has it; None: the PF


@dataclass(frozen=True, slots=True)
class Shell:
    """The part of the card that stays."""

    ports: tuple[Port, ...]
    identity: str = ''  # its id and the interfaces it offers, for the image to name
    version: str = ''


def shell(function: PciFunction) -> Shell | None:
    """Of a physical function; None: no driver of ours is bound to it."""
    for region in function.names('fpga_region'):
        base = f'fpga_region/{region}'
        for management in _numbered(function, base, 'dfl-fme'):
            return _dfl(function, base, management)
    for device in function.names(_OLD):
        base = f'{_OLD}/{device}'
        for management in _numbered(function, base, 'intel-fpga-fme'):
            return _opae(function, base, management)
    return None


def _dfl(function: PciFunction, base: str, management: str) -> Shell:
    own = {
        _port_number(function, port): port
        for port in _numbered(function, base, 'dfl-port')
    }
    given = iter(function.virtfns)
    trouble = _manager_trouble(function, management)
    ports = []
    for number, path in enumerate(_numbered(function, management, 'dfl-fme-region')):
        interface = _interface(function, path)
        if number in own:
            afu = function.text(f'{own[number]}/afu_id')
            virtual = None
        else:
            # Released from the card, it is in the next of its virtual functions.
            virtual = next(given, None)
            afu = _function_behind(function, virtual)
        known = normal_id(afu or '')
        ports.append(Port(number, interface, known, afu is not None, trouble, virtual))
    return _shell(function, management, ports)


def _opae(function: PciFunction, base: str, management: str) -> Shell:
    interface = normal_id(function.text(f'{management}/pr/interface_id') or '')
    ports = []
    for number, path in enumerate(_numbered(function, base, 'intel-fpga-port')):
        afu = function.text(f'{path}/afu_id')
        ports.append(Port(number, interface, normal_id(afu or ''), afu is not None))
    virtual = function.virtfns[:1]
    if not ports and virtual:
        ports.append(Port(0, interface, virtual=virtual[0]))
    return _shell(function, management, ports)


def _shell(function: PciFunction, management: str, ports: list[Port]) -> Shell:
    identity = function.text(f'{management}/bitstream_id') or ''
    interfaces = dict.fromkeys(port.interface_id for port in ports if port.interface_id)
    return Shell(
        ports=tuple(ports),
        identity=' '.join(filter(None, (normal_id(identity), *interfaces))),
        version=_version(identity),
    )


def _version(identity: str) -> str:
    """The upper 16 of 64 bits: 8 of the major version, 4 minor, 4 patch (OPAE)."""
    try:
        top = int(identity, 16) >> 48
    except ValueError:
        return ''
    return f'{top >> 8}.{top >> 4 & 0xF}.{top & 0xF}'


def _manager_trouble(function: PciFunction, management: str) -> str:
    """Kernel: sysfs-class-fpga-manager."""
    for manager in _numbered(function, management, 'dfl-fme-mgr'):
        for name in function.names(f'{manager}/fpga_manager'):
            where = f'{manager}/fpga_manager/{name}'
            state = function.text(f'{where}/state') or ''
            status = function.text(f'{where}/status') or ''
            if state not in _AT_REST or status:
                return f'{state}: {" ".join(status.split())}'.strip(': ')
    return ''


def _interface(function: PciFunction, path: str) -> str:
    for name in function.names(f'{path}/fpga_region'):
        found = function.text(f'{path}/fpga_region/{name}/compat_id')
        if found:
            return normal_id(found)
    return ''


def _function_behind(function: PciFunction, virtual: str | None) -> str | None:
    """None: whatever is bound to the virtual function does not tell."""
    if virtual is None:
        return None
    behind = PciFunction(function.host, virtual)
    for region in behind.names('fpga_region'):
        for port in _numbered(behind, f'fpga_region/{region}', 'dfl-port'):
            return behind.text(f'{port}/afu_id')
    return None


def _port_number(function: PciFunction, port: str) -> int:
    said = function.text(f'{port}/id') or ''
    return int(said) if said.isdecimal() else 0


def _numbered(function: PciFunction, base: str, kind: str) -> list[str]:
    """The paths of ``<kind>.<n>`` below a directory, in the order of their numbers."""
    found = [
        (int(number[1]), name)
        for name in function.names(base)
        if name.startswith(f'{kind}.') and (number := _NUMBER.search(name))
    ]
    return [f'{base}/{name}' for _, name in sorted(found)]
