# SPDX-License-Identifier: Apache-2.0
"""The command line of the launcher."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.launcher.configuration import free_port

_ABOUT: Final = """
Runs the accelerator service (API, conductor and agent in one process), a real Placement
and a receiver of Nova's events on loopback, without authentication, and prints commands
to try. Needs Python 3.11 or newer and a network to install from, nothing else.
"""

_AFTERWARDS: Final = """
Everything lies in .standalone/ at the top of the checkout, or in the directory that
CYBORG_LITE_STANDALONE names: logs/ for what happened, env to be sourced by a shell that
wants to talk to the service.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    demo: bool
    background: bool
    stop: bool
    keep: bool  # what an earlier run left in its databases
    sysfs_root: Path | None  # None: a sample host
    port: int
    placement_port: int


def parse(arguments: Sequence[str]) -> Options:
    """What was asked for; wrong or ``--help``, it ends the process."""
    parser = argparse.ArgumentParser(
        prog='standalone.sh', description=_ABOUT, epilog=_AFTERWARDS
    )
    _add_actions(parser)
    parser.add_argument(
        '--sysfs-root',
        type=_directory,
        metavar='DIR',
        help='look for devices in the sys, proc and dev below DIR; / is this machine '
        '(default: a sample host with two NVIDIA T4 cards)',
    )
    parser.add_argument(
        '--port',
        type=_port,
        default=6666,
        help='of the API, 0 for any that is free (default: %(default)s)',
    )
    parser.add_argument(
        '--placement-port',
        type=_port,
        default=8778,
        metavar='PORT',
        help='of Placement, as above (default: %(default)s)',
    )
    given = vars(parser.parse_args(arguments))
    given['keep'] = given.pop('continue')
    del given['fresh']
    return Options(**given)


def _add_actions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--demo',
        action='store_true',
        help='then play the whole story of an accelerator with evidence for each step, '
        'and fail if a step does. On a terminal the service goes on afterwards, in a '
        'script it ends',
    )
    parser.add_argument(
        '--background',
        action='store_true',
        help='return when everything is ready; end it with --stop',
    )
    parser.add_argument('--stop', action='store_true', help='end what runs')
    state = parser.add_mutually_exclusive_group()
    state.add_argument(
        '--fresh',
        action='store_true',
        help='forget the data of an earlier run (this is the default)',
    )
    state.add_argument(
        '--continue', action='store_true', help='go on with the data of an earlier run'
    )


def _directory(text: str) -> Path:
    path = Path(text).resolve()
    if not (path / 'sys').is_dir():
        raise argparse.ArgumentTypeError(f'there is no sys directory in {path}')
    return path


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError(f'{number} is not a port')
    return number or free_port()
