# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules for host reports that agents send."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import AttachHandle, Device, HostReport
from cyborg_lite.model.inventory.report_rules import check_report
from cyborg_lite.model.inventory.typed_attributes import AttributeType, TypedAttribute
from tests.builders.reports import card, host, report, with_parts

_NUMA = typed_attributes.NUMA_NODE.of(0)
_INVALID = replace(_NUMA, value='zero')


def _with_root(**fields: Any) -> Device:
    """Return a device whose root has these fields (Any: of a Deployable)."""
    return replace(card(1), root=replace(card(1).root, **fields))


def _with_handle(**fields: Any) -> Device:
    """Return a device whose handle has these fields (Any: of an AttachHandle)."""
    [handle] = card(1).root.handles
    return _with_root(handles=(replace(handle, **fields),))


@pytest.mark.parametrize(
    'valid_report',
    [
        report(),
        host(64, 16),
        report(with_parts(card(1), 'a', 'b')),
        report(card(1, serial='same'), card(2, serial='same')),
        report(_with_root(resource_class=None, handles=(), total=0)),
        report(_with_root(total=0, reserved=0)),
        report(replace(card(1), health_reason='x' * 1000)),
    ],
)
def test_check_report_valid_report_is_accepted(valid_report: HostReport) -> None:
    check_report(valid_report)


@pytest.mark.parametrize(
    ('invalid_report', 'message'),
    [
        (report(hostname=''), 'no hostname'),
        (report(hostname='h' * 256), 'hostname'),
        (report(boot_id='b' * 65), 'boot_id'),
        (report(replace(card(1), vendor='v' * 256)), 'vendor'),
        (report(replace(card(1), hardware_id='i' * 129)), 'hardware_id'),
        (report(replace(card(1), model='a\0b')), 'model'),
        (report(replace(card(1), control_address='')), 'no address'),
        (report(card(1), card(1)), 'address 0000:01:00.0 twice'),
        (report(replace(card(1), std_board_info={'k': '\ud800'})), 'std_board_info'),
        (report(replace(card(1), vendor_board_info='x' * 20000)), 'vendor_board_info'),
        (report(_with_root(name='compute-2_x')), 'does not start with compute-1_'),
        (report(_with_root(name='compute-1')), 'does not start with compute-1_'),
        (report(_with_root(name='compute-1_' + 'x' * 250)), 'name'),
        (report(_with_root(resource_class='C' * 256)), 'resource_class'),
        (report(_with_root(traits=('T' * 256,))), 'trait'),
        (report(_with_root(typed_attributes=(_INVALID,))), 'no integer'),
        (report(_with_root(typed_attributes=(_NUMA, _NUMA))), 'numa_node twice'),
        (
            report(
                _with_root(
                    typed_attributes=tuple(
                        TypedAttribute(f'a{n}', AttributeType.STRING, '')
                        for n in range(65)
                    )
                )
            ),
            'more than 64 typed attributes',
        ),
        (report(_with_root(traits=('T',) * 300)), 'more than 256 traits'),
        (report(_with_root(total=-1)), 'total cannot be -1'),
        (report(_with_root(total=2**31)), 'total cannot be 2147483648'),
        (report(_with_root(reserved=-1)), 'reserved cannot be -1'),
        (report(_with_root(attributes={'k' * 129: 'v'})), 'attributes'),
        (report(_with_root(attributes={'k': 'v' * 5000})), 'attributes'),
        (report(_with_handle(key='k' * 129)), 'key'),
        (report(_with_handle(info={'bus': 'x' * 5000})), 'info'),
        (report(_with_root(handles=card(1).root.handles * 2)), 'twice'),
        (report(with_parts(card(1), 'a', 'a')), 'twice'),
    ],
)
def test_check_report_unstorable_value_raises_with_name(
    invalid_report: HostReport, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_report(invalid_report)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


def test_check_report_checks_child_deployables() -> None:
    device = with_parts(card(1), 'a')
    [child] = device.root.children
    invalid_root = replace(device.root, children=(replace(child, total=-1),))
    with pytest.raises(InvalidInput):
        check_report(report(replace(device, root=invalid_root)))


@pytest.mark.parametrize(
    'build_report',
    [
        lambda: report(
            *(replace(card(1), control_address=f'{number}') for number in range(2000))
        ),
        lambda: report(
            _with_root(
                handles=tuple(
                    AttachHandle(f'{number}', card(1).root.handles[0].type, {})
                    for number in range(20000)
                )
            )
        ),
    ],
)
def test_check_report_too_many_objects_raise(
    build_report: Callable[[], HostReport],
) -> None:
    with pytest.raises(InvalidInput, match='more than'):
        check_report(build_report())
