# SPDX-License-Identifier: Apache-2.0
"""Fixture host whose cards are moved, exchanged and removed between scans."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import HostReport
from tests.hosts import sysfs_tree
from tests.hosts.fixture_drivers import create_drivers

# Any, here and below: YAML values have no common type.
Edit = Callable[[dict[str, Any]], dict[str, Any]]


class FixtureHost:
    """Host of ``sysfs-fixtures.yaml``; each scan reads a newly built tree."""

    def __init__(self, fixture: str, hostname: str, directory: Path) -> None:
        self.fixture = fixture
        self.hostname = hostname
        self._directory = directory
        self._numbers = itertools.count()
        self.restore()

    @property
    def expected_devices(self) -> Iterator[dict[str, Any]]:
        """Yield the devices of the fixture that can be scheduled."""
        for fields in sysfs_tree.expectation(self.fixture)['devices']:
            if fields.get('total'):
                yield fields

    def restore(self) -> None:
        """Undo all changes."""
        text = yaml.safe_dump(sysfs_tree.fields_of(self.fixture))
        self._fields: dict[str, Any] = yaml.safe_load(text)

    @property
    def fields(self) -> dict[str, Any]:
        """Return the present state of the host in the form of the fixtures."""
        return self._fields

    def edit(self, *edits: Edit) -> None:
        for edit in edits:
            self._fields = edit(self._fields)

    def scan(self) -> HostReport:
        """Scan with all drivers and the configured vGPU types; return the report."""
        host = Host(self.hostname, self.build())
        results = [
            result
            for driver in create_drivers(host, self.config)
            for result in driver.discover()
        ]
        devices = tuple(result.device for result in results if result.device)
        return HostReport(self.hostname, host.boot_id, devices)

    def build(self) -> Path:
        """Build a tree of the present host and return its root."""
        root = self._directory / f'look-{next(self._numbers)}'
        sysfs_tree.build_from(self._fields, root)
        return root

    @property
    def config(self) -> dict[str, Any]:
        """Return what the operator of the host has configured."""
        config: dict[str, Any] = self._fields.get('expect', {}).get('config', {})
        return config


def renumber_buses(*buses: tuple[str, str]) -> Edit:
    """Return an edit that renumbers buses at once, so that two may be exchanged."""

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
        remaining = [device for device in fields['devices'] if device['pci'] != address]
        return {**fields, 'devices': remaining}

    return edit
