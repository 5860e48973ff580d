# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N802  # the names of libvirt
"""Libvirt of a host with an emulated kernel, on the fake libvirt of Nova's own tests.

Node devices are those of the kernel's tree. Every domain XML is kept in a file, below
``domains/<uuid>`` of the directory of the host. Domains and definitions of mdevs
outlive the process, as those of libvirt do.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from nova.tests.fixtures import libvirt as fake

from tests.doubles.nova_guest import read_address
from tests.hosts.kernel_service import build_forwarder

_ADDRESS: Final = '{}:{}:{}.{}'
_MDEVS: Final = 'sys/bus/mdev/devices'
_DEFINITIONS: Final = 'etc/mdevctl.d'
_WRITE: Final = build_forwarder('write')
_ATTACH: Final = build_forwarder('attach')
_DETACH: Final = build_forwarder('detach')
_MANAGED: Final = "devices/hostdev[@type='pci'][@managed='yes']/source/address"

_DEVICE_XML: Final = """
<device>
  <name>{name}</name>
  <parent>{parent}</parent>
  <capability type='mdev'>
    <type id='{type}'/>
    <uuid>{uuid}</uuid>
    <iommuGroup number='0'/>
  </capability>
</device>
"""


def _fail(text: str, code: int) -> Exception:
    """Return an error of libvirt."""
    error: Exception = fake.make_libvirtError(fake.libvirtError, text, error_code=code)
    return error


class Mdev:
    """Node device of an mdev, which exists or is only defined."""

    def __init__(self, root: Path, uuid: str, address: str, kind: str) -> None:
        self._root = root
        self.uuid = uuid
        self.address = address  # PCI address of the parent
        self.kind = kind

    @property
    def exists(self) -> bool:
        return (self._root / _MDEVS / self.uuid).exists()

    @property
    def definition(self) -> Path:
        return self._root / _DEFINITIONS / self.address / self.uuid

    def name(self) -> str:
        """Return the name that libvirt gives the device."""
        return f'mdev_{self.uuid}_{self.address}'.translate(_TO_NAME)

    def parent(self) -> str:
        """Return the name of the parent."""
        return f'pci_{self.address}'.translate(_TO_NAME)

    def XMLDesc(self, flags: int) -> str:
        """Return the XML of the device."""
        return _DEVICE_XML.format(
            name=self.name(), parent=self.parent(), type=self.kind, uuid=self.uuid
        )

    def create(self, flags: int) -> int:
        """Create the mdev.

        :raises libvirtError: the kernel refuses it
        """
        types = f'sys/bus/pci/devices/{self.address}/mdev_supported_types'
        try:
            _WRITE(None, self._root, f'{types}/{self.kind}/create', self.uuid)
        except OSError as error:
            text = f'internal error: Unable to start mediated device: {error}'
            raise _fail(text, fake.VIR_ERR_INTERNAL_ERROR) from error
        return 0

    def define(self) -> None:
        """Write the definition, without autostart."""
        self.definition.parent.mkdir(parents=True, exist_ok=True)
        self.setAutostart(False)

    def setAutostart(self, autostart: bool) -> int:
        """Set whether the mdev is created at the boot of the host."""
        start = 'auto' if autostart else 'manual'
        content = {'mdev_type': self.kind, 'start': start}
        self.definition.write_text(json.dumps(content))
        return 0


_TO_NAME: Final = str.maketrans('-:.', '___')


class NodeDevices:
    """Mdevs of a host."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def list_created(self) -> Iterator[Mdev]:
        """Yield the mdevs that exist."""
        for link in (self._root / _MDEVS).glob('*'):
            kind = (link / 'mdev_type').resolve().name
            yield Mdev(self._root, link.name, link.resolve().parent.name, kind)

    def list_inactive(self) -> Iterator[Mdev]:
        """Yield the mdevs that are only defined."""
        for path in (self._root / _DEFINITIONS).glob('*/*'):
            content = json.loads(path.read_text())
            mdev = Mdev(self._root, path.name, path.parent.name, content['mdev_type'])
            if not mdev.exists:
                yield mdev

    def parse(self, xml: str) -> Mdev:
        """Return the mdev that an XML describes."""
        tree = ElementTree.fromstring(xml)
        parent = re.split('_', tree.findtext('parent', ''))[1:]
        kind = tree.find('capability/type')
        assert kind is not None
        uuid = tree.findtext('capability/uuid', '')
        return Mdev(self._root, uuid, _ADDRESS.format(*parent), kind.attrib['id'])

    def autostart(self) -> None:
        """Create the defined mdevs, as at the boot of a host; ignore failures."""
        for mdev in list(self.list_inactive()):
            if json.loads(mdev.definition.read_text())['start'] == 'auto':
                try:
                    mdev.create(0)
                except fake.libvirtError:
                    continue


class DomainFiles:
    """Files of a domain: each definition, and the boot in which it runs."""

    def __init__(self, directory: Path, boot_id: str) -> None:
        self.directory = directory
        self._boot_id = boot_id

    def add(self, xml: str) -> None:
        """Keep a definition."""
        self.directory.mkdir(parents=True, exist_ok=True)
        number = len(list(self.directory.glob('*.xml')))
        (self.directory / f'{number:03}.xml').write_text(xml)
        (self.directory / 'undefined').unlink(missing_ok=True)

    @property
    def current(self) -> str | None:
        """The last definition, or None if the domain is undefined."""
        if (self.directory / 'undefined').exists():
            return None
        return max(self.directory.glob('*.xml')).read_text()

    @property
    def is_running(self) -> bool:
        """Return True if the domain runs in the present boot."""
        running = self.directory / 'running'
        return running.exists() and running.read_text() == self._boot_id

    def mark_running(self) -> None:
        (self.directory / 'running').write_text(self._boot_id)

    def mark_stopped(self) -> None:
        (self.directory / 'running').unlink(missing_ok=True)

    def undefine(self) -> None:
        (self.directory / 'undefined').touch()


class KeptDomain(fake.Domain):  # type: ignore[misc]  # Nova has no types
    """Domain with files. It starts only if its mdevs exist.

    The managed PCI functions of a domain are bound to vfio-pci while it runs.
    """

    # Any: the arguments of Nova's class.
    def __init__(self, connection: 'KeptConnection', xml: str, **options: Any) -> None:
        self._host = connection
        super().__init__(connection, xml, **options)
        self._files = connection.files(self.UUIDString())
        self._mdevs = re.findall('<address uuid=[\'"]([^\'"]+)', xml)
        self._functions = [
            read_address(element.attrib)
            for element in ElementTree.fromstring(xml).iterfind(_MANAGED)
        ]

    def createWithFlags(self, flags: int) -> None:
        """Start the domain.

        :raises libvirtError: an mdev of the domain does not exist
        """
        existing = {mdev.uuid for mdev in self._host.devices.list_created()}
        for uuid in self._mdevs:
            if uuid not in existing:
                text = f"device not found: mediated device '{uuid}' not found"
                raise _fail(text, fake.VIR_ERR_NO_NODE_DEVICE)
        for address in self._functions:
            _ATTACH(None, self._host.root, address)
        super().createWithFlags(flags)
        self._files.mark_running()

    def destroy(self) -> None:
        """Stop the domain."""
        super().destroy()
        self._end()

    def shutdown(self) -> None:
        """Stop the domain, as its guest does."""
        super().shutdown()
        self._end()

    def _end(self) -> None:
        for address in self._functions:
            _DETACH(None, self._host.root, address)
        self._files.mark_stopped()

    def undefine(self) -> None:
        """Remove the domain; its files remain."""
        super().undefine()
        self._files.undefine()


class KeptConnection(fake.Connection):  # type: ignore[misc]  # Nova has no types
    """Connection to the libvirt of a host.

    The directory has the tree of the kernel, ``host``, and the domains.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__('qemu:///system', hostname=directory.name)
        self.root = directory / 'host'
        self.devices = NodeDevices(self.root)
        self._domains = directory / 'domains'
        self._boot_id = (self.root / 'proc/sys/kernel/random/boot_id').read_text()
        self.devices.autostart()
        self._restore_domains()

    def files(self, uuid: str) -> DomainFiles:
        """Return the files of a domain."""
        return DomainFiles(self._domains / uuid, self._boot_id)

    def _restore_domains(self) -> None:
        for directory in self._domains.glob('*'):
            files = self.files(directory.name)
            if files.current is not None:
                domain = super().defineXML(files.current)
                if files.is_running:
                    domain.createWithFlags(0)

    # Any, here and below: classes of Nova.
    def defineXML(self, xml: str) -> Any:
        """Define a domain and keep its XML."""
        domain = super().defineXML(xml)
        self.files(domain.UUIDString()).add(xml)
        return domain

    def domainEventRegisterAny(self, *arguments: Any) -> None:
        """Send no events: they need a thread that Nova's fixture does not start."""

    def nodeDeviceLookupByName(self, name: str) -> Any:
        """Return a node device.

        :raises libvirtError: there is no device of this name
        """
        for mdev in (*self.devices.list_created(), *self.devices.list_inactive()):
            if mdev.name() == name:
                return mdev
        if name.startswith('mdev_'):
            text = f"Node device not found: no node device with name '{name}'"
            raise _fail(text, fake.VIR_ERR_NO_NODE_DEVICE)
        return super().nodeDeviceLookupByName(name)

    def nodeDeviceCreateXML(self, xml: str, flags: int) -> Mdev:
        """Create an mdev that is not defined."""
        mdev = self.devices.parse(xml)
        mdev.create(flags)
        return mdev

    def nodeDeviceDefineXML(self, xml: str, flags: int) -> Mdev:
        """Define an mdev."""
        mdev = self.devices.parse(xml)
        mdev.define()
        return mdev

    def listDevices(self, cap: str, flags: int) -> Any:
        """Return the names of the devices with a capability."""
        if cap == 'mdev':
            return [mdev.name() for mdev in self.devices.list_created()]
        return super().listDevices(cap, flags)

    def listAllDevices(self, flags: int) -> list[Any]:
        """Return the devices that the flags select."""
        devices = list(super().listAllDevices(flags))
        if flags & fake.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV:
            inactive = flags & fake.VIR_CONNECT_LIST_NODE_DEVICES_INACTIVE
            listing = self.devices.list_inactive if inactive else None
            devices += (listing or self.devices.list_created)()
        return devices
