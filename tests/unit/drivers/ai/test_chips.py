# SPDX-License-Identifier: Apache-2.0
"""Tests of the drivers for AI processors."""

from typing import Any, Final

import pytest

from cyborg_lite.drivers.ai.chips import AiChip, Ascend, Gaudi
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.hosts.sysfs_device import Plug

_ADDRESS: Final = '0000:0c:00.0'
_CHIP: Final = {'class': '120000', 'driver': None}


# Any: driver options have various types.
def _results(driver: type[AiChip], host: Host, **options: Any) -> list[DiscoveryResult]:
    return list(driver(host, {'offer_without_reset': False, **options}).discover())


@pytest.mark.parametrize(
    ('driver', 'ids', 'model'),
    [
        (Ascend, ('19e5', 'd100'), 'Ascend 310'),
        (Ascend, ('19e5', 'd500'), 'Ascend 310P'),
        (Ascend, ('19e5', 'd801'), 'Ascend 910'),
        (Ascend, ('19e5', 'd802'), 'Ascend 910B'),
        (Gaudi, ('1da3', '1020'), 'Gaudi2'),
    ],
)
def test_discover_known_chip_is_offered(
    driver: type[AiChip], ids: tuple[str, str], model: str, host: Host, plug: Plug
) -> None:
    plug(_ADDRESS, ids, **_CHIP)
    (result,) = _results(driver, host, resource_class='CUSTOM_CHIP')
    assert result.device is not None
    assert result.device.model == model
    root = result.device.root
    assert (root.resource_class, root.total) == ('CUSTOM_CHIP', 1)


@pytest.mark.parametrize(
    ('ids', 'pci_class'), [(('19e5', '1711'), '030000'), (('19e5', 'a222'), '020000')]
)
def test_discover_other_functions_of_vendor_are_ignored(
    ids: tuple[str, str], pci_class: str, host: Host, plug: Plug
) -> None:
    plug(_ADDRESS, ids, **{**_CHIP, 'class': pci_class})
    assert _results(Ascend, host) == []


def test_discover_chip_with_mdev_is_withheld(host: Host, plug: Plug) -> None:
    uuid = '1ae6d6ce-4f2a-4a52-9d0c-0f5f2e7a1001'
    plug(_ADDRESS, ('19e5', 'd500'), **_CHIP, dirs=[f'{uuid}/mdev_type'])
    (result,) = _results(Ascend, host)
    assert result.reason == f'in use by the host: it has the mediated device {uuid}'


@pytest.mark.parametrize(
    ('word', 'text', 'unavailable'),
    [
        ('Malfunction', 'Malfunction', 1),
        ('disabled', 'disabled', 1),
        ('needs reset', 'needs reset', 1),
        ('in reset', 'in reset', 0),
        ('', 'it cannot be read', 0),
    ],
)
def test_discover_chip_that_does_not_work_is_not_free(
    host: Host, plug: Plug, word: str, text: str, unavailable: int
) -> None:
    file = f'accel/accel0/{"device/" if unavailable else ""}status'
    plug(_ADDRESS, ('1da3', '1000'), **_CHIP, files={file: word})
    (result,) = _results(Gaudi, host)
    assert result.reason == f'status of accel0: {text}'
    assert result.device is not None
    root = result.device.root
    # A chip with a fault keeps its inventory; one that starts has none yet.
    assert root.unavailable == root.total == unavailable


@pytest.mark.parametrize('name', ['NPU', 'CUSTOM_npu', 'CUSTOM_', 'MY_CUSTOM_NPU'])
def test_option_invalid_resource_class_is_refused(name: str) -> None:
    (option,) = (item for item in AiChip.OPTIONS if item.name == 'resource_class')
    with pytest.raises(ValueError, match='regex'):
        option.type(name)
    assert option.type('CUSTOM_NPU_310') == 'CUSTOM_NPU_310'
