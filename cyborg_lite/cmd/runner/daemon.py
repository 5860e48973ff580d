# SPDX-License-Identifier: Apache-2.0
"""The runner of all daemons: start, signals, and a shutdown with a time limit.

A single worker runs in the main process. Several workers are forked from it, and each
lives as a single worker does. Each worker builds its own daemon, so that no file or
connection is opened before the fork.

The launcher of oslo.service is not used. It always forks, which costs the memory of a
second process, and it starts a worker that cannot start again and again. Its form
without a fork ends at SIGHUP.
"""

import faulthandler
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from oslo_config import cfg
from oslo_log import log

from cyborg_lite import conf as configuration
from cyborg_lite import runtime
from cyborg_lite.cmd.runner import garbage_collection
from cyborg_lite.cmd.runner.readiness import Checked, Readiness
from cyborg_lite.cmd.runner.watchdog import Watchdog
from cyborg_lite.cmd.support import address
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.rpc import transport
from cyborg_lite.version import VERSION

LOG = log.getLogger(__name__)

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_STARTED: Final = 0  # not a signal number

_RESTART_PAUSE: Final = 1.0  # seconds before a worker replaces one that has ended

# Seconds to wait for ``start`` to return after a stop signal. The start may be blocked
# on a message bus or a database that never answers. No work is in progress yet.
_START_ABORT_TIMEOUT: Final = 3.0


class Daemon(Protocol):
    """A service that the runner starts and stops.

    The constructor only stores its arguments. ``start`` opens connections.
    """

    def start(self) -> None:
        """Start the service and return when it works; see also ``Checked``.

        :raises CyborgError: if it cannot start; the runner logs text and advice of the
            error and exits with status 1
        """
        ...

    def stop(self) -> None:
        """Accept no new work."""
        ...

    def wait(self) -> None:
        """Return when the work in progress has finished and everything is closed."""
        ...


@runtime_checkable
class Reloadable(Protocol):
    """A daemon that reacts to a reload of the configuration."""

    def reload(self) -> None:
        """Apply the options that were reloaded."""
        ...


Build = Callable[[cfg.ConfigOpts], Daemon]


@dataclass(frozen=True, slots=True)
class Identity:
    """The properties of a daemon that it logs at its start."""

    binary: str  # the name of the systemd unit and in the table of services
    opens_database: bool = False
    workers: int = 1


def run(conf: cfg.ConfigOpts, identity: Identity, build: Build) -> int:
    """Run a daemon until SIGTERM or SIGINT; return the exit status of the process.

    SIGTERM stops the daemon within ``[DEFAULT] graceful_shutdown_timeout`` seconds.
    SIGHUP reloads the mutable options. SIGUSR2 writes the stack of
    each thread to standard error.
    """
    failure: CyborgError | None = None
    try:
        configuration.set_up_logging(conf)
        _log_start(conf, identity)
        # Before the fork: the daemon ends here instead of each of its workers.
        transport.prepare_locks(conf)
    except CyborgError as error:
        failure = error
    if failure is not None:
        return _log_failure(failure)
    faulthandler.register(signal.SIGUSR2)
    watchdog = Watchdog.from_environment(os.environ)
    os.environ.pop('NOTIFY_SOCKET', None)  # child processes must not notify systemd

    def work() -> int:
        with _signal_queue() as queue:
            return _run_worker(conf, build, queue, watchdog)

    if identity.workers == 1:
        return work()
    # A collection in a worker would copy each page that it shares.
    garbage_collection.exempt_objects_of_start()
    with _signal_queue(signal.SIGCHLD) as queue:
        return _Supervisor(conf, identity.workers, work, queue).run()


def _log_failure(error: CyborgError) -> int:
    """Log why the daemon cannot start; return the exit status.

    Call it outside of ``except``: there oslo.log adds the text of the error again.
    """
    LOG.error('Cannot start: %s', error.full_text)
    return 1


def _log_start(conf: cfg.ConfigOpts, identity: Identity) -> None:
    back_ends = {'transport': address.without_password(transport.address(conf))}
    if identity.opens_database:
        back_ends['database'] = address.without_password(conf.database.connection)
    LOG.info(
        '%s %s on host %s: %s, concurrency %s, workers %d, configuration %s',
        identity.binary,
        VERSION,
        conf.host,
        ', '.join(f'{name} {url}' for name, url in back_ends.items()),
        runtime.BACKEND,
        identity.workers,
        ', '.join(conf.config_file or ()) or 'all defaults',
    )


# --- signals ----------------------------------------------------------------------


class _SignalQueue:
    """A queue of received signals and of the end of ``start``, one byte per entry."""

    def __init__(self) -> None:
        self._reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)

    def put(self, number: int) -> None:
        self.writer.send(bytes([number]))

    def get(self) -> int:
        """Wait for the next entry and return it."""
        return self._reader.recv(1)[0]

    def close(self) -> None:
        self._reader.close()
        self.writer.close()


@contextmanager
def _signal_queue(*further: int) -> Iterator[_SignalQueue]:
    """Write the signals that stop, reload and the given ones to a queue.

    The signal handlers do nothing. A handler must not take a lock, because the thread
    that it interrupts may already hold it.
    """
    queue = _SignalQueue()
    signal.set_wakeup_fd(queue.writer.fileno(), warn_on_full_buffer=False)
    numbers = (*_STOP_SIGNALS, signal.SIGHUP, *further)
    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)
    # A worker is forked while they are blocked.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    try:
        yield queue
    finally:
        signal.set_wakeup_fd(-1)
        queue.close()


# --- one worker -------------------------------------------------------------------


def _run_worker(
    conf: cfg.ConfigOpts, build: Build, queue: _SignalQueue, watchdog: Watchdog
) -> int:
    """Run a daemon until a stop signal; return the exit status."""
    failure: CyborgError | None = None
    try:
        daemon = build(conf)
        reload = _start(daemon, queue)
    except _StoppedDuringStart as stop:
        LOG.info('Received %s during the start.', signal.Signals(stop.number).name)
        stop.abort_start(conf.graceful_shutdown_timeout)
        LOG.info('Stopped.')
        return 0
    except CyborgError as error:
        failure = error
    if failure is not None:
        return _log_failure(failure)
    garbage_collection.exempt_objects_of_start()
    watchdog.start(daemon)
    readiness = Readiness(watchdog.manager, lambda: _find_fault(conf, daemon))
    readiness.start()
    if reload:
        _reload(conf, daemon)
    while (number := queue.get()) not in _STOP_SIGNALS:
        _reload(conf, daemon)
    name = signal.Signals(number).name
    LOG.info('Received %s; finishing the work in progress.', name)
    watchdog.stop()
    readiness.stop()
    # A second Ctrl-C stops the process at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with _time_limit(conf.graceful_shutdown_timeout):
        daemon.stop()
        daemon.wait()
    LOG.info('Stopped.')
    return 0


def _find_fault(conf: cfg.ConfigOpts, daemon: Daemon) -> str:
    """Return why the daemon cannot serve; empty: it can."""
    fault = transport.find_lock_fault(conf)
    return fault or (daemon.find_fault() if isinstance(daemon, Checked) else '')


class _StoppedDuringStart(Exception):  # not an error
    """A stop signal that arrived before ``start`` returned."""

    def __init__(self, number: int, daemon: Daemon, starting: threading.Thread) -> None:
        self.number = number
        self._daemon = daemon
        self._starting = starting

    def abort_start(self, limit: int) -> None:
        """Stop the daemon. If ``start`` is still blocked, exit the process.

        :param limit: seconds for the shutdown of a daemon whose start has returned
        """
        # ``stop`` may block until ``start`` returns, so it runs in its own thread.
        threading.Thread(target=self._daemon.stop, daemon=True).start()
        self._starting.join(_START_ABORT_TIMEOUT)
        if self._starting.is_alive():
            LOG.info('Start did not finish before the stop; exiting.')
            logging.shutdown()
            os._exit(0)
        with _time_limit(limit):
            self._daemon.stop()
            self._daemon.wait()


def _start(daemon: Daemon, queue: _SignalQueue) -> bool:
    """Start the daemon; return True if a reload was requested meanwhile.

    The start runs in its own thread, because it may block forever while signals must
    be handled.

    :raises _StoppedDuringStart: if a stop signal came first
    :raises BaseException: the exception of the daemon
    """
    failures: list[BaseException] = []

    def start_daemon() -> None:
        try:
            daemon.start()
        except BaseException as error:  # noqa: BLE001  # raised again below
            failures.append(error)
        queue.put(_STARTED)

    starting = threading.Thread(target=start_daemon, name='start', daemon=True)
    starting.start()
    reload = False
    while (number := queue.get()) != _STARTED:
        if number in _STOP_SIGNALS:
            raise _StoppedDuringStart(number, daemon, starting)
        reload = True
    if failures:
        raise failures[0]
    return reload


def _reload(conf: cfg.ConfigOpts, daemon: Daemon | None) -> None:
    try:
        changed = conf.mutate_config_files()
        if isinstance(daemon, Reloadable):
            daemon.reload()
    except (cfg.Error, CyborgError) as error:
        LOG.error('Cannot reload the configuration: %s', error)
        return
    LOG.info('Reloaded the configuration; %d options changed.', len(changed or ()))


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    """Exit the process if the body takes longer than the limit; 0 means no limit."""
    if not seconds:
        yield
        return
    timer = threading.Timer(seconds, _exit_overdue, (seconds,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _exit_overdue(seconds: int) -> None:
    LOG.error('Not stopped within %d s; exiting with unfinished work.', seconds)
    os._exit(1)


# --- several workers --------------------------------------------------------------


class _Supervisor:
    """The parent of several workers: it starts them, and passes signals to them."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        number: int,
        work: Callable[[], int],
        queue: _SignalQueue,
    ) -> None:
        self._conf = conf
        self._number = number
        # The life of a worker; it returns the exit status of its process.
        self._work = work
        self._queue = queue
        self._workers: set[int] = set()  # process ids
        # The kernel closes the socket of the parent when the parent ends or is killed.
        self._worker_socket, self._parent_socket = socket.socketpair()

    def run(self) -> int:
        """Replace workers that end, until a stop signal; return the exit status."""
        while True:
            while len(self._workers) < self._number:
                self._workers.add(self._fork())
            number = self._queue.get()
            if number in _STOP_SIGNALS:
                return self._stop()
            if number == signal.SIGHUP:
                _reload(self._conf, None)
                self._send(signal.SIGHUP)
            elif statuses := self._collect():
                LOG.error('Workers have ended: %s. Others replace them.', statuses)
                time.sleep(_RESTART_PAUSE)

    def _fork(self) -> int:
        """Start a worker, and return its process id."""
        numbers = (*_STOP_SIGNALS, signal.SIGHUP)
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        if process := os.fork():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
            return process
        status = 1
        try:
            runtime.forget_parent()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._parent_socket.close()
            threading.Thread(target=self._end_with_parent, daemon=True).start()
            status = self._work()
        except Exception:
            LOG.exception('Worker %d failed.', os.getpid())
        finally:
            logging.shutdown()
            os._exit(status)

    def _end_with_parent(self) -> None:
        """Stop this worker when its parent has ended."""
        self._worker_socket.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _send(self, number: int) -> None:
        for process in self._workers:
            os.kill(process, number)

    def _collect(self) -> dict[int, int]:
        """Return the statuses of the workers that have ended, by process id."""
        statuses: dict[int, int] = {}
        for process in self._workers:
            ended_process, status = os.waitpid(process, os.WNOHANG)
            if ended_process:
                statuses[process] = os.waitstatus_to_exitcode(status)
        self._workers -= statuses.keys()
        return statuses

    def _stop(self) -> int:
        """Stop all workers; return 0 if each has ended in time."""
        self._send(signal.SIGTERM)
        statuses = set(self._collect().values())
        while self._workers:
            self._queue.get()
            statuses.update(self._collect().values())
        return int(statuses != {0})
