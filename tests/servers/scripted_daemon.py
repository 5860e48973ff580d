# SPDX-License-Identifier: Apache-2.0
"""Daemon with scripted behaviour, run as a process by the tests of the daemon runner.

``python -m tests.servers.scripted_daemon CONFIG_FILE WORKERS [MOOD]``; the mood is
``hang``, ``refuse``, ``stuck``, ``slow``, ``signalled`` or ``thread-ends``.
"""

from cyborg_lite import runtime  # isort: skip  # first, as in every entry point

import gc
import os
import signal
import sys
import threading

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.runner import daemon
from cyborg_lite.errors.daemons import ConfigurationError


class ScriptedDaemon:
    """Daemon that prints each call with its process id."""

    def __init__(self, conf: cfg.ConfigOpts, mood: str) -> None:
        self._conf = conf
        self._mood = mood
        self._stopping = threading.Event()

    def start(self) -> None:
        if self._mood == 'refuse':
            raise ConfigurationError(reason='It is Monday.')
        self._say('start')
        if self._mood == 'stuck':
            threading.Event().wait()
        if self._mood == 'signalled':
            os.kill(os.getpid(), signal.SIGHUP)
        if self._mood == 'slow':
            self._stopping.wait()

    def list_threads(self) -> list[threading.Thread]:
        return [threading.Thread(name='worker')] if self._mood == 'thread-ends' else []

    def stop(self) -> None:
        self._stopping.set()
        self._say(f'stop frozen={gc.get_freeze_count() > 0}')

    def wait(self) -> None:
        if self._mood == 'hang':
            threading.Event().wait()
        self._say('wait')

    def reload(self) -> None:
        self._say(f'reload debug={self._conf.debug}')

    def _say(self, text: str) -> None:
        os.write(1, f'{text} in {os.getpid()} of {runtime.BACKEND}\n'.encode())


def main() -> int:
    config_file, workers, *mood = sys.argv[1:]
    conf = configuration.parse([], 'talking-daemon', [config_file])
    identity = daemon.Identity('talking-daemon', workers=int(workers))
    return daemon.run(
        conf, identity, lambda conf: ScriptedDaemon(conf, (mood or ['well'])[0])
    )


if __name__ == '__main__':
    sys.exit(main())
