# SPDX-License-Identifier: Apache-2.0
"""Tests of the option that declares groups of PCI functions."""

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.function_groups import FunctionGroups, parse_group
from cyborg_lite.errors.daemons import ConfigurationError

_HOST = Host('compute-1')
GPU, AUDIO, PORT = '0000:3b:00.0', '0000:3b:00.1', '0000:18:00.0'


def test_parse_group_accepts_forms_of_addresses() -> None:
    assert parse_group('00000000:3B:00.0+0000:3b:00.1') == (GPU, AUDIO)


@pytest.mark.parametrize(
    'texts',
    [
        [f'{GPU}+nonsense'],
        [f'{GPU}+{GPU}'],
        [f'{GPU}+{AUDIO}', f'{PORT}+{AUDIO}'],
    ],
)
def test_invalid_group_is_refused(texts: list[str]) -> None:
    with pytest.raises(ConfigurationError):
        FunctionGroups(_HOST, texts)
