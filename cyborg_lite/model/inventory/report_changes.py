# SPDX-License-Identifier: Apache-2.0
"""Changes between two reports of a host, so that an agent need not repeat the rest."""

from dataclasses import dataclass, replace

from cyborg_lite.model.inventory.host_report import Device, HostReport


@dataclass(frozen=True, slots=True)
class ReportChanges:
    """Changes from an earlier report of a host to a later one.

    A control address is unique in a report, and identifies the device.
    """

    report: HostReport  # the later one, with its new and changed devices only
    digest: str  # of the whole later report
    base: str = ''  # digest of the earlier report; empty: the report is whole
    removed: tuple[str, ...] = ()  # control addresses


def diff_reports(report: HostReport, base: HostReport | None = None) -> ReportChanges:
    """Return the changes from an earlier report.

    :param base: the earlier report; None: return the whole report
    """
    if base is None:
        return ReportChanges(report, report.digest)
    base_devices = _devices_by_address(base)
    addresses = {device.control_address for device in report.devices}
    return ReportChanges(
        replace(
            report,
            devices=tuple(
                device
                for device in report.devices
                if base_devices.get(device.control_address) != device
            ),
        ),
        digest=report.digest,
        base=base.digest,
        removed=tuple(sorted(base_devices.keys() - addresses)),
    )


def apply_changes(changes: ReportChanges, base: HostReport) -> HostReport | None:
    """Return the later report.

    :param base: the earlier report
    :returns: None if the result is not the report that the sender has
    """
    devices = _devices_by_address(base)
    for address in changes.removed:
        devices.pop(address, None)
    devices |= _devices_by_address(changes.report)
    devices_after = tuple(devices.values())
    report = replace(changes.report, devices=devices_after, agent_digest='')
    return report if report.digest == changes.digest else None


def _devices_by_address(report: HostReport) -> dict[str, Device]:
    return {device.control_address: device for device in report.devices}
