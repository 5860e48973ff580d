# SPDX-License-Identifier: Apache-2.0
"""Begins under the Python of the machine, goes on under that of the environment."""

import os
import signal
import sys
import time
from typing import Final

from devstack.launcher import demo, environment, farewell, places, stack
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.options import Options, parse

_PAUSE: Final = 0.5  # seconds between two looks at the children
_INTERRUPTED: Final = 130


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        if options.stop:
            return _stop()
        if not environment.active():
            environment.ensure()
            _go_on_inside()
        return _launch(options)
    except LaunchFailed as failure:
        print(f'\n{failure}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('\nInterrupted; nothing is left running.', file=sys.stderr)
        return _INTERRUPTED


def _stop() -> int:
    was_running = stack.end_earlier()
    print('Stopped.' if was_running else 'Nothing was running.')
    return 0


def _go_on_inside() -> None:
    """Become the Python of the environment; does not return."""
    arguments = [str(places.PYTHON), '-P', '-m', 'devstack.launcher', *sys.argv[1:]]
    os.execv(places.PYTHON, arguments)


def _launch(options: Options) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if stack.end_earlier():
        print('Stopped what an earlier run had started.', flush=True)
    running = stack.Stack(options)
    stay = False
    try:
        running.start()
        farewell.write_env(running)
        if options.demo:
            demo.play(running, needs_gpu=options.sysfs_root is None)
        farewell.show_commands()
        stay = options.background
        if not stay and (not options.demo or sys.stdin.isatty()):
            _watch(running)
        elif not stay:
            print('No terminal, so it ends now; --background keeps it running.')
    finally:
        if not stay:
            _deaf()
            running.end()
    return 0


def _watch(running: stack.Stack) -> None:
    try:
        print('Ctrl-C ends it.', flush=True)
        while (ended := running.failed()) is None:
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        print('\nStopping.', flush=True)
        return
    raise LaunchFailed(f'{ended.tail()}\n\n{ended.name} ended by itself.')


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _deaf() -> None:
    """A second Ctrl-C must not leave half of it running."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


if __name__ == '__main__':
    sys.exit(main())
