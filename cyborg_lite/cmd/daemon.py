# SPDX-License-Identifier: Apache-2.0
"""The one way in which our daemons run: start, signals, a clean and limited end.

A single worker runs in this very process. Several are forked and watched by
oslo.service; each one builds its own daemon, so that nothing is opened before fork.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from oslo_config import cfg
from oslo_log import log
from oslo_reports import guru_meditation_report
from oslo_reports import opts as report_options
from oslo_service import service as oslo_service
from oslo_service import systemd

from cyborg_lite import conf as configuration
from cyborg_lite import runtime, version
from cyborg_lite.cmd import address
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.rpc import transport

LOG = log.getLogger(__name__)

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
_STARTED: Final = 0  # no signal has that number

# Seconds for a start that was told to end to do so; it may wait for a bus or a
# database that never answers, and nothing is in hand yet.
_LAST_START: Final = 3.0


class Daemon(Protocol):
    """What is run. The constructor only keeps; ``start`` opens and begins."""

    def start(self) -> None:
        """Return when it serves.

        :raises CyborgError: it cannot; the process ends with its text and advice
        """
        ...

    def stop(self) -> None:
        """Take nothing new from now on."""
        ...

    def wait(self) -> None:
        """Return when what was in hand is finished and everything is closed."""
        ...


@runtime_checkable
class Reloading(Protocol):
    """For daemons that have something to do when the configuration was reloaded."""

    def reload(self) -> None: ...


Build = Callable[[cfg.ConfigOpts], Daemon]


@dataclass(frozen=True, slots=True)
class Identity:
    """What a daemon says of itself when it starts."""

    binary: str  # as systemd and the table of services know it
    opens_database: bool = False
    workers: int = 1


def run(conf: cfg.ConfigOpts, identity: Identity, build: Build) -> int:
    """Run until SIGTERM or SIGINT; the exit status of the process.

    SIGTERM ends it, within ``[DEFAULT] graceful_shutdown_timeout``. SIGHUP reloads
    the options that may change in a running process. SIGUSR2 writes a report of all
    threads to standard error or to ``[oslo_reports] log_dir``.
    """
    configuration.set_up_logging(conf)
    report_options.set_defaults(conf)
    guru_meditation_report.TextGuruMeditation.setup_autorun(
        _Package(identity.binary), identity.binary, conf=conf
    )
    _announce(conf, identity)
    if identity.workers > 1:
        return _run_workers(conf, identity, build)
    with _signals() as inbox:
        return _run_here(conf, build, inbox)


class _Package:
    """In the form that the report generator asks for."""

    def __init__(self, binary: str) -> None:
        self._binary = binary

    def vendor_string(self) -> str:
        return 'cyborg_lite'

    def product_string(self) -> str:
        return self._binary

    def version_string_with_package(self) -> str:
        return version.version()


def _announce(conf: cfg.ConfigOpts, identity: Identity) -> None:
    back_ends = {'transport': address.without_password(transport.address(conf))}
    if identity.opens_database:
        back_ends['database'] = address.without_password(conf.database.connection)
    LOG.info(
        '%s %s on host %s: %s, concurrency %s, workers %d, configuration %s',
        identity.binary,
        version.version(),
        conf.host,
        ', '.join(f'{name} {where}' for name, where in back_ends.items()),
        runtime.BACKEND,
        identity.workers,
        ', '.join(conf.config_file or ()) or 'all defaults',
    )


# --- one worker: here -------------------------------------------------------------


class _Inbox:
    """What has happened to the process, one byte each: signals, or that it started."""

    def __init__(self) -> None:
        self._reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)

    def post(self, number: int) -> None:
        self.writer.send(bytes([number]))

    def next(self) -> int:
        """Wait for it."""
        return self._reader.recv(1)[0]

    def close(self) -> None:
        self._reader.close()
        self.writer.close()


@contextmanager
def _signals() -> Iterator[_Inbox]:
    """Each signal that concerns us goes there.

    The handlers themselves do nothing: code that runs inside a signal handler may
    find any lock taken by the very thread that it interrupted.
    """
    inbox = _Inbox()
    signal.set_wakeup_fd(inbox.writer.fileno(), warn_on_full_buffer=False)
    for number in (*_ENDING, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield inbox
    finally:
        signal.set_wakeup_fd(-1)
        inbox.close()


def _run_here(conf: cfg.ConfigOpts, build: Build, inbox: _Inbox) -> int:
    try:
        daemon = build(conf)
        reload = _start(daemon, inbox)
    except _EndedEarly as end:
        LOG.info('Received %s before it was ready.', signal.Signals(end.number).name)
        end.wind_up(conf.graceful_shutdown_timeout)
        return 0
    except CyborgError as error:
        LOG.error('Cannot start: %s %s', error.text, error.advice)
        return 1
    systemd.notify_once()
    LOG.info('Ready.')
    if reload:
        _reload(conf, daemon)
    while (number := inbox.next()) not in _ENDING:
        if number == signal.SIGHUP:
            _reload(conf, daemon)
    LOG.info('Received %s, finishing what is in hand.', signal.Signals(number).name)
    # Whoever asks twice by hand wants it now.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with _limited(conf.graceful_shutdown_timeout):
        daemon.stop()
        daemon.wait()
    LOG.info('Stopped.')
    return 0


class _EndedEarly(Exception):  # it is no error
    """The process was told to end while it started."""

    def __init__(self, number: int, daemon: Daemon, starting: threading.Thread) -> None:
        self.number = number
        self._daemon = daemon
        self._starting = starting

    def wind_up(self, limit: int) -> None:
        """Does not return if the start does not either: nothing is in hand then.

        :param limit: seconds for a daemon that did start
        """
        # It may wait for the start.
        threading.Thread(target=self._daemon.stop, daemon=True).start()
        self._starting.join(_LAST_START)
        if self._starting.is_alive():
            LOG.info('Still waiting for something; ending without it.')
            logging.shutdown()
            os._exit(0)
        with _limited(limit):
            self._daemon.stop()
            self._daemon.wait()


def _start(daemon: Daemon, inbox: _Inbox) -> bool:
    """True: meanwhile a reload was asked for.

    In a thread of its own, because it may block for ever, and signals must be heard.

    :raises _EndedEarly: a signal came first
    :raises BaseException: whatever the daemon raised
    """
    failures: list[BaseException] = []

    def begin() -> None:
        try:
            daemon.start()
        except BaseException as error:  # noqa: BLE001  # raised again below
            failures.append(error)
        inbox.post(_STARTED)

    starting = threading.Thread(target=begin, name='start', daemon=True)
    starting.start()
    reload = False
    while (number := inbox.next()) != _STARTED:
        if number in _ENDING:
            raise _EndedEarly(number, daemon, starting)
        reload = True
    if failures:
        raise failures[0]
    return reload


def _reload(conf: cfg.ConfigOpts, daemon: Daemon) -> None:
    try:
        changed = conf.mutate_config_files()
        if isinstance(daemon, Reloading):
            daemon.reload()
    except (cfg.Error, CyborgError) as error:
        LOG.error('The configuration is not reloaded: %s', error)
        return
    LOG.info('Reloaded the configuration; %d options changed.', len(changed or ()))


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """End the process should the body last longer. 0: it may."""
    if not seconds:
        yield
        return
    timer = threading.Timer(seconds, _give_up, (seconds,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(seconds: int) -> None:
    LOG.error('Not finished after %d seconds; ending with work in hand.', seconds)
    os._exit(1)


# --- several workers: oslo.service ------------------------------------------------


class _Worker(oslo_service.ServiceBase):  # type: ignore[misc]  # untyped base
    """A daemon in the form that oslo.service asks for."""

    def __init__(self, conf: cfg.ConfigOpts, build: Build) -> None:
        self._conf = conf
        self._build = build
        self._daemon: Daemon | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        try:
            daemon = self._build(self._conf)
            daemon.start()
        except CyborgError as error:
            LOG.error('Cannot start: %s %s', error.text, error.advice)
            raise SystemExit(1) from None
        self._daemon = daemon
        LOG.info('Worker %d is ready.', os.getpid())

    def stop(self) -> None:
        # The parent of eventlet workers calls this too, where nothing was started.
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon.wait()
        self._stopped.set()

    def wait(self) -> None:
        self._stopped.wait()

    def reset(self) -> None:
        if isinstance(self._daemon, Reloading):
            self._daemon.reload()


def _run_workers(conf: cfg.ConfigOpts, identity: Identity, build: Build) -> int:
    launcher = oslo_service.launch(
        conf, _Worker(conf, build), workers=identity.workers, restart_method='mutate'
    )
    return int(launcher.wait() or 0)
