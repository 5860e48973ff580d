# SPDX-License-Identifier: Apache-2.0
"""A fabricated host whose cards are moved, swapped and taken out between looks."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.inspur_fpga import InspurFpga
from cyborg_lite.drivers.intel_fpga import IntelFpga
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.xilinx_fpga import XilinxFpga
from cyborg_lite.model.inventory import HostReport
from tests.fakes import sysfs_tree

DRIVERS: Final = (AmdGpu, InspurFpga, IntelFpga, IntelGpu, NvidiaGpu, XilinxFpga)

# Any, here and below: what YAML holds has no type of its own.
Edit = Callable[[dict[str, Any]], dict[str, Any]]


class FixtureHost:
    """One host of ``sysfs-fixtures.yaml``; each look is at a tree built anew."""

    def __init__(self, fixture: str, hostname: str, directory: Path) -> None:
        self.fixture = fixture
        self.hostname = hostname
        self._directory = directory
        self._numbers = itertools.count()
        self.restore()

    @property
    def expected(self) -> Iterator[dict[str, Any]]:
        """What the fixture says of each device that can be scheduled."""
        for fields in sysfs_tree.expectation(self.fixture)['devices']:
            if fields.get('total'):
                yield fields

    def restore(self) -> None:
        """As it was at first."""
        text = yaml.safe_dump(sysfs_tree.fields_of(self.fixture))
        self._fields: dict[str, Any] = yaml.safe_load(text)

    @property
    def fields(self) -> dict[str, Any]:
        """As it is now, in the form of the fixtures."""
        return self._fields

    def edit(self, *edits: Edit) -> None:
        for each in edits:
            self._fields = each(self._fields)

    def look(self) -> HostReport:
        """As an agent would, with the vGPU types that the fixture configures."""
        host = Host(self.hostname, self.build())
        found = [one for driver in self._drivers(host) for one in driver.discover()]
        devices = tuple(one.device for one in found if one.device)
        return HostReport(self.hostname, host.boot_id, devices)

    def build(self) -> Path:
        """A tree of the host as it is now; its root."""
        root = self._directory / f'look-{next(self._numbers)}'
        sysfs_tree.build_from(self._fields, root)
        return root

    @property
    def rules(self) -> list[str]:
        """Of vGPU types, as the operator of the host has them."""
        config = self._fields.get('expect', {}).get('config', {})
        return [
            f'{card}={"+".join(types) if isinstance(types, list) else types}'
            for card, types in config.get('vgpu_types', {}).items()
        ]

    def _drivers(self, host: Host) -> Iterator[Driver]:
        rules = self.rules
        for kind in DRIVERS:
            defaults = {each.dest: each.default for each in kind.OPTIONS}
            yield kind(host, defaults | {'vgpu_types': rules})


def renumbered(*buses: tuple[str, str]) -> Edit:
    """Each bus gets another number, all at once: two may change places."""

    def edit(fields: dict[str, Any]) -> dict[str, Any]:
        text = yaml.safe_dump(fields, width=10_000)
        for old, new in buses:
            text = text.replace(f'0000:{old}:', f'0000:<{new}>:')
        for _, new in buses:
            text = text.replace(f'<{new}>', new)
        changed: dict[str, Any] = yaml.safe_load(text)
        return changed

    return edit


def without(address: str) -> Edit:
    def edit(fields: dict[str, Any]) -> dict[str, Any]:
        left = [one for one in fields['devices'] if one['pci'] != address]
        return {**fields, 'devices': left}

    return edit


def with_text(old: str, new: str) -> Edit:
    """Say it differently wherever it is said, e.g. the uuid of a card."""

    def edit(fields: dict[str, Any]) -> dict[str, Any]:
        text = yaml.safe_dump(fields, width=10_000)
        assert old in text
        changed: dict[str, Any] = yaml.safe_load(text.replace(old, new))
        return changed

    return edit
