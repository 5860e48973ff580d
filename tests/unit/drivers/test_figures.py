# SPDX-License-Identifier: Apache-2.0
"""How a function is doing, by its files."""

import shutil
from pathlib import Path

import pytest

from cyborg_lite.drivers.figures import of_function
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage
from tests.unit.drivers.conftest import Plug

_CARD = '0000:3b:00.0'
_NARROW = ['16.0 GT/s PCIe', '8', '16.0 GT/s PCIe', '16']


def _usage(host: Host) -> Usage:
    return of_function(PciFunction(host, _CARD))


def test_a_card_that_is_well_says_so(host: Host, plug: Plug) -> None:
    plug(_CARD, link=['2.5 GT/s PCIe', '16', '16.0 GT/s PCIe', '16'])
    usage = _usage(host)
    # An idle card lowers the speed of its link, never its width.
    assert (usage.health, usage.reason) == (Health.OK, '')
    assert usage.temperature is None


def test_a_card_on_fewer_lanes_is_degraded(host: Host, plug: Plug) -> None:
    plug(_CARD, link=_NARROW)
    assert _usage(host).health is Health.DEGRADED
    assert _usage(host).reason == 'link of 8 lanes instead of 16'


def test_the_link_of_a_card_at_a_guest_is_the_guests(host: Host, plug: Plug) -> None:
    plug(_CARD, link=_NARROW, driver='vfio-pci')
    assert _usage(host).health is Health.OK


def test_fatal_errors_fail_a_card(host: Host, plug: Plug) -> None:
    plug(_CARD, files={'aer_dev_fatal': 'DLP 2\nTOTAL_ERR_FATAL 2'})
    assert _usage(host).health is Health.FAILED
    assert _usage(host).counters == {'correctable': 0, 'nonfatal': 0, 'fatal': 2}


@pytest.mark.parametrize('lost', [True, False])
def test_a_card_that_does_not_answer_has_no_figures(
    host: Host, plug: Plug, lost: bool
) -> None:
    directory: Path = plug(_CARD, lost=lost)
    if not lost:
        shutil.rmtree(directory)
    assert _usage(host).health is (Health.FAILED if lost else Health.GONE)


def test_a_card_that_sleeps_is_not_woken(host: Host, plug: Plug) -> None:
    plug(_CARD, link=_NARROW, files={'power/runtime_status': 'suspended'})
    assert _usage(host) == Usage()
