# SPDX-License-Identifier: Apache-2.0
"""Tests of the SMART log."""

import json

import pytest

from cyborg_lite.drivers.storage.smart import SMART_SIGNALS, parse_log

_LOG = {'critical_warning': 0, 'percent_used': 7, 'media_errors': 3}


def test_parse_log_names_each_signal() -> None:
    readings = parse_log(json.dumps(_LOG))
    assert readings.keys() == {*SMART_SIGNALS}
    assert {name: n for name, n in readings.items() if n} == {
        'smart_percentage_used': 7,
        'smart_media_errors': 3,
    }


@pytest.mark.parametrize(('bit', 'signal'), [*enumerate(SMART_SIGNALS[:5])])
def test_parse_log_tells_warnings_apart(bit: int, signal: str) -> None:
    readings = parse_log(json.dumps({**_LOG, 'critical_warning': 1 << bit}))
    assert [name for name in SMART_SIGNALS[:5] if readings[name]] == [signal]


@pytest.mark.parametrize('text', ['', '[]', '{"percent_used": 1}', '{"critical_warn'])
def test_parse_log_refuses_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r'SMART|Expecting|Unterminated'):
        parse_log(text)
