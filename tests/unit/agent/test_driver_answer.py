# SPDX-License-Identifier: Apache-2.0
"""An answer of a driver makes sense as a whole, or does not count."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.agent.driver_answer import Bounds, claims, understood
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.inventory import Device, Finding
from tests.fakes.drivers import finding

BOUNDS = Bounds('compute-1', 'scripted')
ONE, OTHER = '0000:01:00.0', '0000:02:00.0'


def device(address: str = ONE) -> Device:
    found = finding(address).device
    assert found is not None
    return found


# Any: values that fit no field.
def with_values(**values: Any) -> Finding:
    return replace(finding(), **values)


def with_device(**values: Any) -> Finding:
    return with_values(device=replace(device(), **values))


def with_root(**values: Any) -> Finding:
    return with_device(root=replace(device().root, **values))


def test_what_makes_sense_is_taken_as_it_is() -> None:
    said = (finding(ONE), finding(OTHER, offered=False))
    assert understood(iter(said), BOUNDS) == said


@pytest.mark.parametrize(
    'nonsense',
    [
        lambda: None,
        lambda: ['a string'],
        lambda: [with_values(device='a string')],
        lambda: [with_root(total=-1)],
        lambda: [with_root(total=2.5)],
        lambda: [with_root(name='other-host_x')],
        lambda: [with_root(units=device().root.units * 2)],
        lambda: [with_root(traits=('x' * 256,))],
        lambda: [with_device(model='x' * 256)],
        lambda: [with_device(model='\0')],
        lambda: [with_device(address='')],
        lambda: [with_values(address=OTHER)],
        lambda: [finding(), finding()],
        lambda: [finding(), finding(offered=False)],
        lambda: [finding(driver='another')],
        lambda: [with_values(device=None, reason=None)],
    ],
)
def test_what_makes_no_sense_is_refused(nonsense: Callable[[], Any]) -> None:
    with pytest.raises((CyborgError, TypeError, AttributeError)):
        understood(nonsense(), BOUNDS)


@pytest.mark.parametrize('claim', list(claims(device())))
def test_what_another_driver_has_cannot_be_claimed(claim: str) -> None:
    with pytest.raises(CyborgError, match=f'It claims {claim}'):
        understood([finding()], replace(BOUNDS, theirs={claim}))
