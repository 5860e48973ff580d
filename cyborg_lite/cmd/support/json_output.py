# SPDX-License-Identifier: Apache-2.0
"""The option ``--json`` of every subcommand.

A subcommand that has a table prints a JSON document of its own. The output of any other
subcommand becomes ``{"exit_status": 0, "messages": ["..."]}``.
"""

import contextlib
import dataclasses
import io
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.cmd.support.text_table import Columns, format_records

JSON: Final = 'json'


def is_json(conf: cfg.ConfigOpts) -> bool:
    """Check whether the subcommand prints JSON."""
    return getattr(conf.command, 'format', None) == JSON


# Any: records of one class.
def print_records(
    conf: cfg.ConfigOpts,
    records: Iterable[Any],
    columns: Columns,
    empty: str,
    build_document: Callable[[Any], object] = dataclasses.asdict,
) -> None:
    """Print records as a table, or as JSON.

    :param empty: text in place of a table without rows
    :param build_document: returns the JSON object of a record
    """
    if is_json(conf):
        documents = [build_document(record) for record in records]
        print(json.dumps(documents, indent=2, default=str))  # times are text
    else:
        print(format_records(records, columns, empty))


def run_command(conf: cfg.ConfigOpts, run: Callable[[], int]) -> int:
    """Run a subcommand; with ``--json`` print its output as JSON.

    :param run: prints the output and returns the exit status
    """
    if not is_json(conf):
        return run()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = run()
    text = output.getvalue()
    if _is_document(text):
        print(text.rstrip('\n'))
    else:
        messages = [line for line in text.splitlines() if line]
        print(json.dumps({'exit_status': status, 'messages': messages}, indent=2))
    return status


def _is_document(text: str) -> bool:
    """Check whether the text is a JSON object or list."""
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False
