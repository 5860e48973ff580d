# SPDX-License-Identifier: Apache-2.0
"""The vendor's library is read by a process that may fail or hang in our stead."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cyborg_lite.drivers import nvml
from cyborg_lite.drivers.nvml import Nvml

_CARD = '0000:3b:00.0'


def _reader(code: str) -> Nvml:
    return Nvml((sys.executable, '-c', code))


def test_a_reading_is_kept_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader('print(\'{"busy_percent": 7}\')')
    reader.read(_CARD)
    assert reader.figures(_CARD) == {'busy_percent': 7}


@pytest.mark.parametrize('code', ['raise SystemExit(1)', 'print("no JSON")', ''])
def test_a_reading_that_fails_is_no_reading(code: str) -> None:
    reader = _reader(code)
    reader.read(_CARD)
    assert reader.figures(_CARD) == {}


def test_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, '_TIMEOUT', 0.2)
    reader = _reader('import threading; threading.Event().wait()')
    reader.read(_CARD)
    assert reader.figures(_CARD) == {}


def test_it_is_not_opened_while_it_must_be_closed() -> None:
    reader = _reader('print(\'{"busy_percent": 7}\')')
    with reader.closed():
        reader.read(_CARD)
    assert reader._figures == {}


def test_without_the_library_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, '_is_installed', lambda: False)
    assert Nvml().figures(_CARD) == {}


class _Error(Exception):
    """As the library's own."""


# Any: it stands for a library without types.
def _library(calls: list[str]) -> Any:
    def unsupported(*_arguments: object) -> None:
        raise _Error

    memory = SimpleNamespace(used=1, total=2)
    return SimpleNamespace(
        NVMLError=_Error,
        nvmlInit=lambda: calls.append('open'),
        nvmlShutdown=lambda: calls.append('close'),
        nvmlDeviceGetHandleByPciBusId=lambda address: address,
        nvmlDeviceGetUtilizationRates=unsupported,  # as with MIG
        nvmlDeviceGetMemoryInfo=lambda card: memory,
        nvmlDeviceGetTemperature=lambda card, sensor: 41,
        nvmlDeviceGetPowerUsage=lambda card: 70500,
        nvmlDeviceGetTotalEccErrors=unsupported,
    )


def test_what_a_card_does_not_have_is_left_out_and_the_library_closed() -> None:
    calls: list[str] = []
    assert nvml._read(_library(calls), _CARD) == {
        'memory_used': 1,
        'memory_total': 2,
        'temperature': 41,
        'power': 70.5,
    }
    assert calls == ['open', 'close']
