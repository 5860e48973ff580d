# SPDX-License-Identifier: Apache-2.0
"""What agents may send, and what is refused before anything is written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.inventory import Device, HostReport, Unit
from cyborg_lite.model.report_rules import check
from tests.fakes.cards import card, host, report, with_parts


def _with_root(**fields: Any) -> Device:
    """Any: fields of a Deployable."""
    return replace(card(1), root=replace(card(1).root, **fields))


def _with_unit(**fields: Any) -> Device:
    """Any: fields of a Unit."""
    [only] = card(1).root.units
    return _with_root(units=(replace(only, **fields),))


@pytest.mark.parametrize(
    'good',
    [
        report(),
        host(64, 16),
        report(with_parts(card(1), 'a', 'b')),
        report(card(1, serial='same'), card(2, serial='same')),
        report(_with_root(resource_class=None, units=(), total=0)),
        report(_with_root(total=0, reserved=0)),
        report(replace(card(1), health_reason='x' * 1000)),
    ],
)
def test_what_drivers_report_is_taken(good: HostReport) -> None:
    check(good)


@pytest.mark.parametrize(
    ('bad', 'complaint'),
    [
        (report(hostname=''), 'names no host'),
        (report(hostname='h' * 256), 'hostname'),
        (report(boot_id='b' * 65), 'boot_id'),
        (report(replace(card(1), vendor='v' * 256)), 'vendor'),
        (report(replace(card(1), hardware_id='i' * 129)), 'hardware_id'),
        (report(replace(card(1), model='a\0b')), 'model'),
        (report(replace(card(1), address='')), 'no address'),
        (report(card(1), card(1)), 'address 0000:01:00.0 twice'),
        (report(replace(card(1), std_board_info={'k': '\ud800'})), 'std_board_info'),
        (report(replace(card(1), vendor_board_info='x' * 20000)), 'vendor_board_info'),
        (report(_with_root(name='compute-2_x')), 'not named for host compute-1'),
        (report(_with_root(name='compute-1')), 'not named for host compute-1'),
        (report(_with_root(name='compute-1_' + 'x' * 250)), 'name'),
        (report(_with_root(resource_class='C' * 256)), 'resource_class'),
        (report(_with_root(traits=('T' * 256,))), 'trait'),
        (report(_with_root(traits=('T',) * 300)), 'more than 256 traits'),
        (report(_with_root(total=-1)), 'cannot have -1 units'),
        (report(_with_root(total=2**31)), 'cannot have 2147483648 units'),
        (report(_with_root(reserved=-1)), 'cannot have -1 units'),
        (report(_with_root(attributes={'k' * 129: 'v'})), 'attributes'),
        (report(_with_root(attributes={'k': 'v' * 5000})), 'attributes'),
        (report(_with_unit(key='k' * 129)), 'key'),
        (report(_with_unit(info={'bus': 'x' * 5000})), 'info'),
        (report(_with_root(units=card(1).root.units * 2)), 'twice'),
        (report(with_parts(card(1), 'a', 'a')), 'twice'),
    ],
)
def test_what_cannot_be_kept_is_refused_and_named(
    bad: HostReport, complaint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(bad)
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_rules_reach_down_the_tree() -> None:
    device = with_parts(card(1), 'a')
    [part] = device.root.parts
    wrong = replace(device.root, parts=(replace(part, total=-1),))
    with pytest.raises(InvalidInput):
        check(report(replace(device, root=wrong)))


@pytest.mark.parametrize(
    'flood',
    [
        lambda: report(
            *(replace(card(1), address=f'{number}') for number in range(2000))
        ),
        lambda: report(
            _with_root(
                units=tuple(
                    Unit(f'{number}', card(1).root.units[0].type, {})
                    for number in range(20000)
                )
            )
        ),
    ],
)
def test_a_flood_is_refused(flood: Callable[[], HostReport]) -> None:
    with pytest.raises(InvalidInput, match='more than'):
        check(flood())
