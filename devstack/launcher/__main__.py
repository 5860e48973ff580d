# SPDX-License-Identifier: Apache-2.0
"""Entry point of standalone.sh.

It starts with the Python of the machine, creates the virtual environment, and then
executes itself again with the Python of that environment.
"""

import os
import signal
import sys
import time
from typing import Final

from devstack.launcher import (
    demo,
    environment,
    host_reboot,
    next_steps,
    paths,
    sample_hosts,
    stack,
)
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.options import Options, parse

_POLL_INTERVAL: Final = 0.5  # seconds between two checks of the child processes
_INTERRUPTED: Final = 130


def main() -> int:
    """Run the launcher; return the exit status."""
    options = parse(sys.argv[1:])
    try:
        if options.stop:
            return _stop()
        if options.reboot_host:
            host_reboot.run()
            return 0
        if not environment.is_active():
            if not options.sample_hosts:
                _stop_previous_run()
                # The installation takes minutes, so the ports are checked before it.
                stack.check_ports(options)
            environment.ensure()
            _execute_in_environment()
        if options.sample_hosts:
            print(sample_hosts.list_texts())
            return 0
        return _launch(options)
    except LaunchFailed as failure:
        print(f'\n{failure}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('\nInterrupted. All processes are stopped.', file=sys.stderr)
        return _INTERRUPTED


def _stop() -> int:
    was_running = stack.stop_previous_run()
    print('Stopped.' if was_running else 'Nothing was running.')
    return 0


def _stop_previous_run() -> None:
    names = stack.stop_previous_run()
    if names:
        print(
            f'Stopped the previous run of this checkout: {", ".join(names)}.',
            flush=True,
        )


def _execute_in_environment() -> None:
    """Replace this process by the Python of the environment. Does not return."""
    arguments = [str(paths.PYTHON), '-P', '-m', 'devstack.launcher', *sys.argv[1:]]
    os.execv(paths.PYTHON, arguments)


def _launch(options: Options) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    _stop_previous_run()
    running = stack.Stack(options)
    keep_running = False
    try:
        running.start()
        next_steps.write_env(running)
        if options.demo:
            demo.run(running)
        next_steps.show_commands(running)
        keep_running = options.background
        if not keep_running and (not options.demo or sys.stdin.isatty()):
            _watch(running)
        elif not keep_running:
            print('No terminal: stopping now. Use --background to keep it running.')
    finally:
        if not keep_running:
            _ignore_signals()
            running.end()
    return 0


def _watch(running: stack.Stack) -> None:
    try:
        print('Press Ctrl-C to stop.', flush=True)
        while (child := running.find_exited_child()) is None:
            time.sleep(_POLL_INTERVAL)
    except KeyboardInterrupt:
        print('\nStopping.', flush=True)
        return
    raise LaunchFailed(f'{child.tail()}\n\n{child.name} exited unexpectedly.')


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    """Prevent a second Ctrl-C from interrupting the shutdown."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


if __name__ == '__main__':
    sys.exit(main())
