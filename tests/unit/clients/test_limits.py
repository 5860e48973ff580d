# SPDX-License-Identifier: Apache-2.0
"""Limits from Keystone: cache, failures and configuration.

For a real Keystone see ``tests/nova/test_project_limits.py``.
"""

import sys
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.clients.limits import KeystoneLimits, Reader
from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable

NAMES = ('class:PGPU', 'accelerator_requests')


class Library:
    """A stand-in for the library, which counts connections and reads."""

    def __init__(self) -> None:
        self.connections = 0
        self.failure: Exception | None = None
        self.now = 0.0

    def connect(self) -> Reader:
        self.connections += 1
        return self.read

    def read(self, _project: str, names: Collection[str]) -> list[tuple[str, int]]:
        if self.failure is not None:
            raise self.failure
        return [(name, 5) for name in names]


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def limits(library: Library) -> KeystoneLimits:
    return KeystoneLimits(library.connect, lambda: library.now)


def test_read_limits_connects_once_a_minute(
    library: Library, limits: KeystoneLimits
) -> None:
    assert limits.read_limits('p', NAMES) == dict.fromkeys(NAMES, 5)
    library.now = 59.0
    limits.read_limits('p', NAMES)
    assert library.connections == 1
    library.now = 61.0
    limits.read_limits('p', NAMES)
    assert library.connections == 2


def test_read_limits_failure_is_unavailable(
    library: Library, limits: KeystoneLimits, caplog: pytest.LogCaptureFixture
) -> None:
    library.failure = ValueError('Service not found')
    with pytest.raises(ServiceUnavailable):
        limits.read_limits('p', NAMES)
    assert 'Service not found' in caplog.text
    library.failure = None
    assert limits.read_limits('p', NAMES)
    assert library.connections == 2


def test_read_limits_waiting_reads_fail_with_the_first(library: Library) -> None:
    """Otherwise each of them waits for the timeout of Keystone."""
    entered, over = threading.Event(), threading.Event()

    def time_out() -> Reader:
        library.connections += 1
        entered.set()
        over.wait()
        raise TimeoutError

    limits = KeystoneLimits(time_out)
    with ThreadPoolExecutor(8) as pool:
        reads = [pool.submit(limits.read_limits, 'p', NAMES)]
        assert entered.wait(20.0)
        reads += [pool.submit(limits.read_limits, 'p', NAMES) for _ in range(7)]
        while not all(read.running() for read in reads):
            time.sleep(0.01)
        time.sleep(0.2)  # until the threads wait for the first one
        over.set()
        errors = {type(read.exception()) for read in reads}
    assert errors == {ServiceUnavailable}
    # A thread that was not given the processor in time connects by itself.
    assert library.connections < len(reads)


@pytest.fixture
def build_client() -> Callable[..., KeystoneLimits | None]:
    """Return a function that builds the client from options."""

    def build(**options: object) -> KeystoneLimits | None:
        conf = configuration.parse([], 'prog', config_files=[])
        conf.set_override('enabled', True, 'limits')
        for name, value in options.items():
            conf.set_override(name, value, 'oslo_limit')
        return KeystoneLimits.from_config_if_enabled(conf)

    return build


def test_disabled_limits_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'oslo_limit', None)
    conf = configuration.parse([], 'prog', config_files=[])
    assert KeystoneLimits.from_config_if_enabled(conf) is None


def test_missing_library_is_configuration_error(
    build_client: Callable[..., KeystoneLimits | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'oslo_limit', None)
    with pytest.raises(ConfigurationError, match=r'cyborg-lite\[limits\]'):
        build_client(auth_type='password')


@pytest.mark.parametrize('auth_type', [None, 'nonsense'])
def test_wrong_auth_type_is_configuration_error(
    build_client: Callable[..., KeystoneLimits | None], auth_type: str | None
) -> None:
    with pytest.raises(ConfigurationError, match='auth_type'):
        build_client(auth_type=auth_type)
