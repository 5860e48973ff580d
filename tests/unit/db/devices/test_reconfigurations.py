# SPDX-License-Identifier: Apache-2.0
"""Tests of the stored log of changes."""

from cyborg_lite.db.devices.reconfigurations import MAX_LOG_BYTES, append_log


def test_append_log_keeps_lines_in_order() -> None:
    assert append_log('', ['a', 'b']) == 'a\nb'
    assert append_log('a\nb', ['c']) == 'a\nb\nc'
    assert append_log('a', []) == 'a'


def test_append_log_drops_first_lines_above_limit() -> None:
    log = ''
    for number in range(3000):
        log = append_log(log, [f'{number}: häufig {"x" * 20}'])
    assert len(log.encode()) <= MAX_LOG_BYTES
    first, second, *_, last = log.splitlines()
    assert first == '(earlier lines are dropped)'
    assert second.endswith('x' * 20)
    assert second.split(':')[0].isdigit()
    assert last.startswith('2999: ')
