# SPDX-License-Identifier: Apache-2.0
"""Storage targets of a running SPDK: NVMe-oF subsystems and vhost-user controllers.

The driver calls the JSON-RPC methods of SPDK (SPDK: doc/jsonrpc.md). It gives access to
a subsystem by adding the NQN of the instance to the hosts of the subsystem. The targets
themselves, with their block devices, are created by the operator.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.functions import attributes, custom_name
from cyborg_lite.drivers.storage.json_rpc import JsonRpc, JsonRpcError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.traits import OWNER_CYBORG

_DISCOVERY: Final = 'Discovery'  # subtype of subsystems without namespaces
_MAX_NAME: Final = 48  # characters of a target in addresses and providers
_HOST_NQN: Final = 'nqn.2014-08.org.nvmexpress:uuid:'  # NVMe base specification
_MODEL: Final = 'SPDK'
_NVMF_CLASS: Final = 'CUSTOM_NVMF'
_VHOST_CLASS: Final = 'CUSTOM_VHOST_USER'

# Any: an object in JSON.
Target = Mapping[str, Any]


class SpdkTargets:
    """Driver for NVMe-oF and vhost-user targets of SPDK."""

    NAME: ClassVar[str] = 'spdk_driver'
    DEVICE_TYPE: ClassVar[str] = 'SSD'
    RESOURCE_CLASS: ClassVar[str] = f'{_NVMF_CLASS}, {_VHOST_CLASS}'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt(
            'socket',
            default='/var/tmp/spdk.sock',
            help="""
Socket on which SPDK serves JSON-RPC. The user of the agent must be able to write
to it. Change it if SPDK is started with another path (option -r).
""",
        ),
        cfg.FloatOpt(
            'call_timeout',
            default=5.0,
            min=0.1,
            help="""
Seconds after which a JSON-RPC call of SPDK fails. Raise it if SPDK is busy for
longer, for example while it creates block devices.
""",
        ),
    )

    def __init__(self, host: Host, options: Options) -> None:
        self._host = host
        self._socket = str(options['socket']).lstrip('/')
        self._rpc = JsonRpc(host.root / self._socket, options['call_timeout'])
        self._own: dict[str, str] = {}  # NQN of the host by uuid of the handle
        self._last: dict[str, DiscoveryResult] = {}  # by address

    def restore_device(self, device: Device) -> None:
        address = device.control_address
        self._last[address] = DiscoveryResult(
            address, _MODEL, '', self.NAME, '', device
        )

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        for handle in handles:
            if handle.type == HandleType.NVMF:
                self._own[handle.uuid] = _host_nqn(handle)

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield a result per target; the last ones as failed while SPDK is stopped."""
        if not self._host.has(self._socket) and not self._last:
            return
        try:
            results = {item.address: item for item in self._read_targets()}
        except DriverError as error:
            for result in self._last.values():
                yield _set_failed(result, error.text)
            return
        self._last = results
        yield from results.values()

    def prepare(self, handle: AllocatedHandle) -> None:
        """Allow the host NQN of the instance to connect to the subsystem."""
        nqn, host_nqn = handle.info['nqn'], _host_nqn(handle)
        self._own[handle.uuid] = host_nqn
        subsystem = self._find_subsystem(nqn)
        if subsystem is None:
            raise DriverError(reason=f'SPDK has no subsystem {nqn}.')
        if host_nqn not in _list_hosts(subsystem):
            self._call('nvmf_subsystem_add_host', nqn=nqn, host=host_nqn)

    def connect(self, handle: AllocatedHandle) -> None:
        """Check that the spawned instance has a connection to the subsystem.

        The instance is admitted again if SPDK was restarted meanwhile.
        """
        self.prepare(handle)
        nqn, host_nqn = handle.info['nqn'], self._own[handle.uuid]
        connections = self._find_objects('nvmf_subsystem_get_controllers', nqn=nqn)
        if connections is None:
            return  # SPDK before 21.04 does not list connections
        if host_nqn not in (item.get('hostnqn') for item in connections):
            reason = f'SPDK: {host_nqn} has no connection to {nqn}.'
            raise DriverError(reason=reason)

    def release(self, handle: AllocatedHandle) -> None:
        """Remove the host NQN of the instance, which ends its connections."""
        nqn = handle.info['nqn']
        host_nqn = self._own.get(handle.uuid) or _host_nqn(handle)
        subsystem = self._find_subsystem(nqn)
        if subsystem is not None and host_nqn in _list_hosts(subsystem):
            self._call('nvmf_subsystem_remove_host', nqn=nqn, host=host_nqn)
        self._own.pop(handle.uuid, None)

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        subsystem = self._find_subsystem(handle.info['nqn'])
        return subsystem is not None and _host_nqn(handle) in _list_hosts(subsystem)

    def _find_subsystem(self, nqn: str) -> Target | None:
        """Return a subsystem, or None if SPDK has no such subsystem.

        :raises DriverError: SPDK does not answer
        """
        subsystems = self._find_objects('nvmf_get_subsystems') or ()
        return next((item for item in subsystems if item.get('nqn') == nqn), None)

    # Any: JSON.
    def _call(self, method: str, **params: Any) -> Any:
        """Call a method of SPDK.

        :raises DriverError: SPDK refused it or does not answer
        """
        try:
            return self._rpc.call(method, **params)
        except JsonRpcError as error:
            raise DriverError(reason=f'SPDK: {error}.') from None

    # Any: JSON.
    def _find_objects(self, method: str, **params: Any) -> Sequence[Target] | None:
        """Return the objects of a list, or None if SPDK runs without this part.

        :raises DriverError: SPDK refused it or does not answer
        """
        try:
            items = self._rpc.call(method, **params)
        except JsonRpcError as error:
            if error.is_unknown:
                return None
            raise DriverError(reason=f'SPDK: {error}.') from None
        return [item for item in items or () if isinstance(item, dict)]

    def _read_targets(self) -> Iterator[DiscoveryResult]:
        """Yield the targets of SPDK.

        :raises DriverError: SPDK does not answer
        """
        self._call('spdk_get_version')
        for subsystem in self._find_objects('nvmf_get_subsystems') or ():
            if subsystem.get('subtype') != _DISCOVERY and subsystem.get('nqn'):
                yield self._classify_subsystem(subsystem)
        for controller in self._find_objects('vhost_get_controllers') or ():
            if controller.get('ctrlr'):
                yield self._classify_controller(controller)

    def _classify_subsystem(self, subsystem: Target) -> DiscoveryResult:
        nqn = str(subsystem['nqn'])
        address = f'nvmf-{_abbreviate(nqn)}'
        listeners = [
            item
            for item in subsystem.get('listen_addresses') or ()
            if isinstance(item, dict)
        ]
        reason = ''
        if subsystem.get('allow_any_host'):
            reason = 'it allows any host; disable allow_any_host'
        elif not subsystem.get('namespaces'):
            reason = 'it has no namespace'
        elif not listeners:
            reason = 'it has no listener'
        if reason:
            return self._build_result(address, nqn, None, reason)
        first = listeners[0]
        kind = str(first.get('trtype', '')).upper()
        keys = ('trtype', 'adrfam', 'traddr', 'trsvcid')
        info = {'nqn': nqn, **{key: str(first.get(key, '')) for key in keys}}
        foreign = set(_list_hosts(subsystem)) - set(self._own.values())
        handle = AttachHandle(
            address, HandleType.NVMF, info, needs_host=True, in_use=bool(foreign)
        )
        traits = 'NVMF', f'NVMF_{kind}'
        deployable = self._build_deployable(address, _NVMF_CLASS, traits, handle)
        listener = f'{info["traddr"]}:{info["trsvcid"]}'
        reason = f'NVMe-oF subsystem at {kind} {listener}'
        return self._build_result(address, nqn, deployable, reason)

    def _classify_controller(self, controller: Target) -> DiscoveryResult:
        name = str(controller['ctrlr'])
        backend = controller.get('backend_specific')
        kind = next(iter(backend), '') if isinstance(backend, dict) else ''
        info = {'socket': str(controller.get('socket', '')), 'backend': kind}
        address = f'vhost-{_abbreviate(name)}'
        handle = AttachHandle(address, HandleType.VHOST_USER, info)
        traits = ('VHOST_USER', f'VHOST_USER_{kind}') if kind else ('VHOST_USER',)
        deployable = self._build_deployable(address, _VHOST_CLASS, traits, handle)
        reason = f'vhost-user controller at {info["socket"]}'
        return self._build_result(address, name, deployable, reason)

    def _build_deployable(
        self,
        address: str,
        resource_class: str,
        names: Sequence[str],
        handle: AttachHandle,
    ) -> Deployable:
        traits = (OWNER_CYBORG, 'CUSTOM_SPDK', *map(custom_name, names))
        return Deployable(
            name=f'{self._host.name}_{address}',
            resource_class=resource_class,
            traits=traits,
            total=1,
            handles=(handle,),
            attributes=attributes(resource_class, traits),
        )

    def _build_result(
        self, address: str, name: str, root: Deployable | None, reason: str
    ) -> DiscoveryResult:
        device = Device(
            type=self.DEVICE_TYPE,
            vendor=_MODEL,
            model=name[:255],
            driver=_MODEL,
            control_address=address,
            hardware_id=name[:128],
            root=root or Deployable(f'{self._host.name}_{address}'),
            health_reason='' if root else reason,
        )
        return DiscoveryResult(address, _MODEL, '', self.NAME, reason, device)


def _host_nqn(handle: AllocatedHandle) -> str:
    """Return the NQN with which the instance connects."""
    return f'{_HOST_NQN}{handle.instance_uuid}'


def _list_hosts(subsystem: Target) -> list[str]:
    return [
        str(item.get('nqn'))
        for item in subsystem.get('hosts') or ()
        if isinstance(item, dict)
    ]


def _abbreviate(name: str) -> str:
    """Return a name for addresses and providers, which is unique and has no slash."""
    text = re.sub('[^A-Za-z0-9.:_-]', '-', name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    is_same = text == name and len(text) <= _MAX_NAME
    return text if is_same else f'{text[: _MAX_NAME - 9]}-{digest}'


def _set_failed(result: DiscoveryResult, reason: str) -> DiscoveryResult:
    """Return the last result of a target with its inventory reserved."""
    if result.device is None:
        return result
    root = result.device.root
    device = replace(
        result.device,
        root=replace(root, reserved=root.total),
        health=Health.FAILED,
        health_reason=reason,
    )
    return replace(result, reason=reason, device=device)
