# SPDX-License-Identifier: Apache-2.0
"""Tests of the names of PCI ids."""

import re
from pathlib import Path

import pytest

from cyborg_lite.drivers.network.sriov_nic import SriovNic
from cyborg_lite.drivers.pci.names import VENDOR_NAMES, load_names

_DATABASE = """\
# A comment
10de  NVIDIA Corporation
\t1eb8  TU104GL [Tesla T4]
\t\t10de 12a2  Tesla T4 of a subsystem
8086  Intel Corporation
\t4940  4xxx Series QAT
C 03  Display controller
\t1eb8  VGA compatible controller
"""


@pytest.mark.parametrize(
    ('ids', 'name'),
    [
        ('10de:1eb8', 'NVIDIA Corporation TU104GL [Tesla T4]'),
        ('8086:4940', 'Intel Corporation 4xxx Series QAT'),
        ('8086:ffff', 'Intel Corporation'),
        ('8086:1eb8', 'Intel Corporation'),
        ('8086', 'Intel Corporation'),
        ('ffff:1eb8', None),
        ('', None),
        ('fake', None),
    ],
)
def test_describe_database(ids: str, name: str | None, tmp_path: Path) -> None:
    path = tmp_path / 'pci.ids'
    path.write_text(_DATABASE, encoding='utf-8')
    assert load_names([tmp_path / 'absent', path]).describe(ids) == name


def test_load_names_invalid_utf_8_keeps_other_lines(tmp_path: Path) -> None:
    path = tmp_path / 'pci.ids'
    path.write_bytes(b'10de  NVIDIA \xff\n\t1eb8  T4\n')
    assert (
        load_names([path]).describe('10de:1eb8')
        == 'NVIDIA \N{REPLACEMENT CHARACTER} T4'
    )


def test_vendor_names_fit_ids_and_traits() -> None:
    """sysfs has ids in lower case; a trait has upper case."""
    assert all(re.fullmatch('[0-9a-f]{4}', number) for number in VENDOR_NAMES)
    assert all(re.fullmatch('[A-Z0-9_]+', name) for name in VENDOR_NAMES.values())
    assert len(set(VENDOR_NAMES.values())) == len(VENDOR_NAMES)


def test_vendors_of_network_cards_have_names() -> None:
    """The driver for network cards has no other source of the name."""
    assert {ids.partition(':')[0] for ids in SriovNic.MODELS} <= VENDOR_NAMES.keys()
