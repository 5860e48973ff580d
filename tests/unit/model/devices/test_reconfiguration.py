# SPDX-License-Identifier: Apache-2.0
"""Tests of the selection of devices and of settings by hardware sets."""

from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.errors.devices import InvalidSettings
from cyborg_lite.model.devices.reconfiguration import DeviceFacts, HardwareSet

_DEVICE = DeviceFacts(
    'a8c5', 'compute-1', '0000:3b:00.0', 'GPU', '10de', '2330', 'nvidia_gpu_driver'
)


@pytest.mark.parametrize(
    ('patterns', 'is_selected'),
    [
        ({'host': ('compute-*',)}, True),
        ({'host': ('other', 'compute-1'), 'vendor': ('10de',)}, True),
        ({'host': ('compute-*',), 'vendor': ('8086',)}, False),
        ({'type': ('FPGA',)}, False),
        ({'driver': ('nvidia*',), 'model': ('2330',)}, True),
    ],
)
def test_set_selects_devices_that_match_each_field(
    patterns: dict[str, tuple[str, ...]], is_selected: bool
) -> None:
    assert HardwareSet('a', 's', 't', patterns).selects(_DEVICE) is is_selected


@pytest.mark.parametrize(
    ('changes', 'is_safe'),
    [
        ({}, True),
        ({'hostname': 'c1:!c2'}, False),
        ({'hostname': '@/etc/passwd'}, False),
        ({'hostname': 'all,c2'}, False),
        ({'address': "{{ lookup('pipe', 'id') }}"}, False),
    ],
)
def test_names_from_agent_are_checked(changes: dict[str, str], is_safe: bool) -> None:
    assert (not replace(_DEVICE, **changes).find_unsafe()) is is_safe


_SET = HardwareSet(
    'a',
    's',
    't',
    {},
    settings={
        'text': {'type': 'string'},
        'path': {'type': 'string', 'pattern': '^/opt/[a-z]+$'},
        'lines': {'type': 'array', 'items': {'type': 'string', 'enum': ['a b=1']}},
        'objects': {'type': 'array'},
    },
)


@pytest.mark.parametrize(
    'values',
    [{'text': 'a-b 1.2'}, {'path': '/opt/a'}, {'lines': ['a b=1']}, {}],
)
def test_settings_valid_values_are_accepted(values: dict[str, Any]) -> None:
    _SET.check_settings(values)


@pytest.mark.parametrize(
    'values',
    [
        {'text': '/etc'},
        {'text': '{{ a }}'},
        {'text': 'a\nb'},
        {'text': 'x' * 256},
        {'path': '/etc/a'},
        {'lines': ['a c=1']},
        {'objects': [{'{{ a }}': 1}]},
        {'objects': [['{% a %}']]},
        {'other': 1},
    ],
)
def test_settings_unsafe_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        _SET.check_settings(values)
