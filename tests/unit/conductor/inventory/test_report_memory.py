# SPDX-License-Identifier: Apache-2.0
"""Last reports of hosts."""

from dataclasses import replace

from cyborg_lite import codec
from cyborg_lite.conductor.inventory.inventory import ReportMemory
from tests.builders.reports import HOST, host

REPORT = host(2, 2)


def test_find_returns_last_report_of_host() -> None:
    memory = ReportMemory()
    memory.remember(host(1, 1))
    memory.remember(REPORT)
    assert memory.find(HOST, REPORT.digest) == REPORT
    assert memory.find(HOST, host(1, 1).digest) is None
    assert memory.find('other', REPORT.digest) is None


def test_remember_above_maximum_forgets_oldest() -> None:
    memory = ReportMemory(max_size=2 * len(codec.pack(REPORT)) + 40)
    hosts = ['a', 'b', 'a', 'c', 'd']
    for name in hosts:
        memory.remember(replace(REPORT, hostname=name))
    names = [name for name in 'abcd' if memory.find(name, REPORT.digest)]
    assert names == ['c', 'd']
