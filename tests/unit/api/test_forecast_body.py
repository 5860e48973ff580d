# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of changes of hardware."""

from typing import Any, Final

import pytest

from cyborg_lite.api import forecast_body
from cyborg_lite.api.microversion import V2_26
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.device_profiles import Limits
from cyborg_lite.model.forecasts import ForecastRequest, HardwareChange, NewDevice
from cyborg_lite.model.inventory import HandleType
from tests.doubles.conductor import FakeConductor
from tests.support.api.calls import build_call
from tests.support.api.conversation import Client

UUID: Final = '11111111-2222-3333-4444-555555555555'
OTHER_UUID: Final = '11111111-2222-3333-4444-666666666666'
NEW: Final = {'hostname': 'compute-1', 'resources': {'PGPU': 2}}


def parse(
    *changes: dict[str, Any], conductor: FakeConductor | None = None, **body: Any
) -> ForecastRequest:
    call = build_call(body={'changes': list(changes), **body}, version=V2_26)
    return forecast_body.parse_request(call, Limits(), conductor or FakeConductor())


def test_request_without_profiles_is_for_all() -> None:
    assert parse() == ForecastRequest(())


def test_device_is_removed_or_gets_mode() -> None:
    request = parse(
        {'device': UUID.replace('-', '').upper(), 'remove': True},
        {'device': OTHER_UUID, 'mode': 'mig'},
    )
    assert request.changes == (HardwareChange(UUID), HardwareChange(OTHER_UUID, 'mig'))


def test_new_device_has_defaults() -> None:
    (change,) = parse({**NEW, 'resources': {'pgpu': 2, 'custom-nic': 1}}).changes
    amounts = {'PGPU': 2, 'CUSTOM_NIC': 1}
    device = NewDevice('compute-1', amounts, handle_type=HandleType.PCI, count=1)
    assert change == HardwareChange(device=device)


def test_new_device_has_all_fields() -> None:
    fields = {
        'traits': ['CUSTOM_B', 'CUSTOM_A', 'CUSTOM_B'],
        'attributes': {'memory_mib': 1024},
        'attach_handle_type': 'MDEV',
        'count': 3,
    }
    (change,) = parse({**NEW, **fields}).changes
    assert change.device == NewDevice(
        'compute-1',
        {'PGPU': 2},
        ('CUSTOM_B', 'CUSTOM_A'),
        (typed_attributes.MEMORY.of(1024),),
        HandleType.MDEV,
        3,
    )


@pytest.mark.parametrize(
    ('name', 'value', 'is_valid'),
    [
        ('memory_mib', 1, True),
        ('memory_mib', True, False),
        ('memory_mib', '1', False),
        ('same_card', True, True),
        ('same_card', 1, False),
        ('model', 'T4', True),
        ('model', 4, False),
        ('model', 'm' * 300, False),
        ('colour', 'red', False),
    ],
)
def test_attribute_value_has_declared_type(
    name: str, value: int | str, is_valid: bool
) -> None:
    declarations = (
        typed_attributes.MEMORY,
        typed_attributes.SAME_CARD,
        typed_attributes.MODEL,
    )
    if is_valid:
        attribute = forecast_body._parse_attribute('x', name, value, declarations)
        (declaration,) = [item for item in declarations if item.name == name]
        assert attribute == declaration.of(value)
    else:
        with pytest.raises(InvalidInput, match=f'x: .*{name}'):
            forecast_body._parse_attribute('x', name, value, declarations)


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ([{}], r'changes\[0\] lacks hostname, or a device'),
        ([NEW, {'hostname': 'h'}], r'changes\[1\] lacks resources'),
        ([{'device': UUID}], 'either mode or remove'),
        ([{'device': UUID, 'count': 2}], 'count is not allowed together with device'),
        ([{**NEW, 'remove': True}], 'remove is allowed only together with device'),
        ([{'device': UUID, 'mode': 'a'}] * 2, 'more than once'),
        ([{**NEW, 'resources': {'a': 1, 'b': 1}, 'count': 100}] * 6, 'have 1200'),
    ],
)
def test_invalid_changes_are_refused(changes: list[dict[str, Any]], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        parse(*changes)


def test_profiles_become_distinct_uuids() -> None:
    client = Client()
    uuid = client.create_profile('dp1')['uuid']
    request = parse(conductor=client.conductor, profiles=['dp1', uuid, 'dp1'])
    assert request.profiles == (uuid,)


def test_groups_become_new_profile() -> None:
    request = parse(groups=[{'resources:pgpu': 1}], profiles=[])
    assert request.profiles == ()
    assert request.new_profile is not None
    assert request.new_profile.groups == ({'resources:PGPU': '1'},)
