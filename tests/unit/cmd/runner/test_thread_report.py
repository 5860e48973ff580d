# SPDX-License-Identifier: Apache-2.0
"""The report of all threads on SIGUSR2."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_reports import opts

from cyborg_lite.cmd.runner import daemon


@pytest.fixture(autouse=True)
def restore_handler() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, handler)


def configure(**options: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([])
    opts.set_defaults(conf)
    for name, value in options.items():
        conf.set_override(name, value, 'oslo_reports')
    return conf


def test_signal_writes_report_to_directory(tmp_path: Path) -> None:
    daemon.set_up_thread_report(configure(log_dir=str(tmp_path)), 'cyborg-lite-api')
    signal.raise_signal(signal.SIGUSR2)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith('cyborg-lite-api_gurumeditation_')
    report = file.read_text()
    assert 'cyborg_lite' in report
    assert 'test_signal_writes_report_to_directory' in report


def test_signal_writes_report_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    daemon.set_up_thread_report(configure(), 'cyborg-lite-api')
    signal.raise_signal(signal.SIGUSR2)
    assert 'Threads' in capsys.readouterr().err


def test_watched_file_replaces_the_signal(tmp_path: Path) -> None:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    file = tmp_path / 'trigger'
    file.touch()
    daemon.set_up_thread_report(
        configure(file_event_handler=str(file)), 'cyborg-lite-api'
    )
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
