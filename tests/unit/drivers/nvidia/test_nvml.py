# SPDX-License-Identifier: Apache-2.0
"""Tests of reading NVML in a child process."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cyborg_lite.drivers.nvidia import nvml
from cyborg_lite.drivers.nvidia.nvml import Nvml

_CARD = '0000:3b:00.0'


def _reader(code: str) -> Nvml:
    return Nvml((sys.executable, '-c', code))


def test_readings_returns_cached_values(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _reader('print(\'{"busy_percent": 7}\')')
    reader.refresh(_CARD)
    assert reader.readings(_CARD) == {'busy_percent': 7}


@pytest.mark.parametrize('code', ['raise SystemExit(1)', 'print("no JSON")', ''])
def test_refresh_failing_command_caches_nothing(code: str) -> None:
    reader = _reader(code)
    reader.refresh(_CARD)
    assert reader.readings(_CARD) == {}


def test_refresh_hanging_command_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, '_TIMEOUT', 0.2)
    reader = _reader('import threading; threading.Event().wait()')
    reader.refresh(_CARD)
    assert reader.readings(_CARD) == {}


def test_refresh_while_closed_does_nothing() -> None:
    reader = _reader('print(\'{"busy_percent": 7}\')')
    with reader.keep_closed():
        reader.refresh(_CARD)
    assert reader._readings == {}


def test_readings_without_library_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    assert Nvml().readings(_CARD) == {}


class _Error(Exception):
    """The exception of the library."""


# Any: the real library is untyped.
def _library(calls: list[str]) -> Any:
    def fail(*_arguments: object) -> None:
        raise _Error

    memory = SimpleNamespace(used=1, total=2)
    return SimpleNamespace(
        NVMLError=_Error,
        nvmlInit=lambda: calls.append('open'),
        nvmlShutdown=lambda: calls.append('close'),
        nvmlDeviceGetHandleByPciBusId=lambda address: address,
        nvmlDeviceGetUtilizationRates=fail,  # as with MIG
        nvmlDeviceGetMemoryInfo=lambda card: memory,
        nvmlDeviceGetTemperature=lambda card, sensor: 41,
        nvmlDeviceGetPowerUsage=lambda card: 70500,
        nvmlDeviceGetTotalEccErrors=fail,
    )


def test_read_unsupported_values_are_omitted() -> None:
    calls: list[str] = []
    assert nvml._read(_library(calls), _CARD) == {
        'memory_used': 1,
        'memory_total': 2,
        'temperature': 41,
        'power': 70.5,
    }
    assert calls == ['open', 'close']
