# SPDX-License-Identifier: Apache-2.0
"""Changes between two reports of a host."""

from dataclasses import replace

import pytest

from cyborg_lite.model.inventory.host_report import Device, Health
from cyborg_lite.model.inventory.report_changes import apply_changes, diff_reports
from tests.builders.reports import card, report, without_handles

FIRST, SECOND, THIRD = (card(bus, handles=4) for bus in (1, 2, 3))
BASE = report(FIRST, SECOND)


@pytest.mark.parametrize(
    'devices',
    [
        (FIRST, SECOND),
        (FIRST,),
        (),
        (FIRST, SECOND, THIRD),
        (THIRD,),
        (replace(FIRST, health=Health.FAILED), SECOND),
        (FIRST, without_handles(SECOND, '0000:02:00.1')),
        # Another card in the slot of a removed one.
        (replace(FIRST, hardware_id='another'), SECOND),
    ],
)
def test_apply_changes_returns_later_report(devices: tuple[Device, ...]) -> None:
    later = replace(report(*devices), boot_id='boot-2', identity='i', number=7)
    changes = diff_reports(later, BASE)
    result = apply_changes(changes, BASE)
    assert result is not None
    assert result.digest == later.digest
    assert replace(result, devices=()) == replace(later, devices=())
    assert set(map(repr, result.devices)) == set(map(repr, later.devices))


def test_changes_contain_changed_devices_only() -> None:
    changed = without_handles(SECOND, '0000:02:00.1')
    changes = diff_reports(report(FIRST, changed), BASE)
    assert changes.report.devices == (changed,)
    assert (changes.base, changes.removed) == (BASE.digest, ())


def test_changes_without_base_are_whole_report() -> None:
    changes = diff_reports(BASE)
    assert (changes.report, changes.base, changes.removed) == (BASE, '', ())


def test_apply_changes_to_other_report_returns_none() -> None:
    changes = diff_reports(report(FIRST), BASE)
    assert apply_changes(changes, report(FIRST, SECOND, THIRD)) is None
