# SPDX-License-Identifier: Apache-2.0
"""Parsers of subcommands, whose ``--help`` describes them."""

from typing import Any


# Any: the parsers of argparse have no public type.
def add_command(parsers: Any, name: str, text: str) -> Any:
    """Add the parser of a subcommand.

    :param text: shown in the list of subcommands and in the help of this one
    """
    description = f'{text[0].upper()}{text[1:]}.'
    return parsers.add_parser(name, help=text, description=description)
