# SPDX-License-Identifier: Apache-2.0
"""The command line of the launcher."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.launcher import sample_hosts
from devstack.launcher.configuration import free_port

_ABOUT: Final = """
Run the accelerator service (API, conductor and agent in one process), a real Placement
service and a receiver of Nova events on loopback, without authentication. Print example
commands. Requirements: Python 3.11 or newer, and access to a Python package index.
"""

_EPILOG: Final = """
All files are in .standalone/ at the top of the checkout, or in the directory that
CYBORG_LITE_STANDALONE names. Logs are in logs/. Source the file env in a shell to use
the service.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed command line."""

    demo: bool
    background: bool
    stop: bool
    reboot_host: bool
    sample_hosts: bool  # list them
    keep: bool  # the databases of the previous run
    sysfs_root: Path | None  # None: the sample host
    sample_host: str  # a name of sample_hosts, or the path of a YAML file
    port: int
    placement_port: int


def parse(arguments: Sequence[str]) -> Options:
    """Parse the command line. Exit on an error and after ``--help``."""
    parser = argparse.ArgumentParser(
        prog='standalone.sh', description=_ABOUT, epilog=_EPILOG
    )
    _add_actions(parser)
    _add_hosts(parser)
    parser.add_argument(
        '--port',
        type=_port,
        default=6666,
        help='port of the API; 0 selects a free port (default: %(default)s)',
    )
    parser.add_argument(
        '--placement-port',
        type=_port,
        default=8778,
        metavar='PORT',
        help='port of Placement; 0 selects a free port (default: %(default)s)',
    )
    values = vars(parser.parse_args(arguments))
    if values['port'] == values['placement_port']:
        parser.error('--port and --placement-port are the same number')
    values['keep'] = values.pop('continue')
    del values['fresh']
    return Options(**values)


def _add_actions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--demo',
        action='store_true',
        help='create, bind and delete an ARQ for each type of device, print the result '
        'of each step, and exit with status 1 if a step fails. On a terminal the '
        'service keeps running afterwards; in a script it stops',
    )
    parser.add_argument(
        '--background',
        action='store_true',
        help='return when all services are ready; stop them with --stop',
    )
    parser.add_argument(
        '--stop', action='store_true', help='stop the services of a previous run'
    )
    parser.add_argument(
        '--reboot-host',
        action='store_true',
        help='reboot the sample host of the running service, and print the ARQs '
        'before and after the reboot',
    )
    parser.add_argument(
        '--sample-hosts', action='store_true', help='list the sample hosts'
    )
    state = parser.add_mutually_exclusive_group()
    state.add_argument(
        '--fresh',
        action='store_true',
        help='delete the data of a previous run (default)',
    )
    state.add_argument(
        '--continue', action='store_true', help='keep the data of a previous run'
    )


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    hosts = parser.add_mutually_exclusive_group()
    hosts.add_argument(
        '--sample-host',
        type=_sample_host,
        default=sample_hosts.DEFAULT,
        metavar='NAME',
        help='sample host with an emulated kernel: a name of --sample-hosts, or a YAML '
        'file that describes a host (default: two NVIDIA T4 cards and three FPGAs)',
    )
    hosts.add_argument(
        '--sysfs-root',
        type=_directory,
        metavar='DIR',
        help='directory with the sys, proc and dev to scan instead; / is this machine',
    )


def _sample_host(text: str) -> str:
    if text in sample_hosts.NAMES:
        return text
    path = Path(text).resolve()
    if path.suffix == '.yaml' and path.is_file():
        return str(path)
    raise argparse.ArgumentTypeError(
        f'{text} is neither a sample host nor a YAML file; choose from '
        f'{", ".join(sample_hosts.NAMES)}'
    )


def _directory(text: str) -> Path:
    path = Path(text).resolve()
    if not (path / 'sys').is_dir():
        raise argparse.ArgumentTypeError(f'{path} has no subdirectory sys')
    return path


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError(f'{number} is not a port')
    return number or free_port()
