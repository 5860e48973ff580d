# SPDX-License-Identifier: Apache-2.0
"""Tests of the names of PCI vendors in traits."""

import re

from cyborg_lite.drivers.network.sriov_nic import SriovNic
from cyborg_lite.drivers.pci.vendors import VENDOR_NAMES


def test_vendor_names_fit_ids_and_traits() -> None:
    """sysfs has ids in lower case; a trait has upper case."""
    assert all(re.fullmatch('[0-9a-f]{4}', number) for number in VENDOR_NAMES)
    assert all(re.fullmatch('[A-Z0-9]+', name) for name in VENDOR_NAMES.values())
    assert len(set(VENDOR_NAMES.values())) == len(VENDOR_NAMES)


def test_vendors_of_network_cards_have_names() -> None:
    """The driver for network cards has no other source of the name."""
    assert {ids.partition(':')[0] for ids in SriovNic.MODELS} <= VENDOR_NAMES.keys()
