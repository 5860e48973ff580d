# SPDX-License-Identifier: Apache-2.0
"""Parsers of subcommands, whose ``--help`` describes them."""

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

from oslo_config import cfg

from cyborg_lite.cmd.support.json_output import JSON

Parsers: TypeAlias = Any  # the parsers of argparse have no public type


def add_command(
    parsers: Parsers,
    name: str,
    text: str,
    run: Callable[[cfg.ConfigOpts], int | None] | None = None,
    *,
    has_table: bool = False,
) -> Any:
    """Add the parser of a subcommand, with the option ``--json``.

    :param text: shown in the list of subcommands and in the help of this one
    :param run: returns the exit status, or None for 0; None: the program chooses it
    :param has_table: also add the option ``--format``
    """
    parser = add_plain_command(parsers, name, text)
    # It has the effect of `--format json`.
    parser.add_argument(
        '--json',
        action='store_const',
        const=JSON,
        dest='format',
        default=argparse.SUPPRESS,  # the option --format has another default
        help='print JSON',
    )
    if has_table:
        parser.add_argument('--format', choices=['table', 'json'], default='table')
    parser.set_defaults(run=run)
    return parser


def add_plain_command(parsers: Parsers, name: str, text: str) -> Any:
    """Add the parser of a subcommand that defines ``--json`` itself.

    :param text: shown in the list of subcommands and in the help of this one
    """
    description = f'{text[0].upper()}{text[1:]}.'
    return parsers.add_parser(name, help=text, description=description)


def add_group(parsers: Parsers, name: str, text: str) -> Any:
    """Add a group of subcommands; return the collection of their parsers.

    :param text: shown in the list of subcommands and in the help of the group
    """
    group = add_plain_command(parsers, name, text)
    return group.add_subparsers(title='commands', required=True, metavar='COMMAND')
