# SPDX-License-Identifier: Apache-2.0
"""Base classes of the commands."""

import argparse
import logging
from collections.abc import Sequence
from typing import Any, Final, TextIO

from osc_lib.command import command

from cyborg_lite.cli import waiting
from cyborg_lite.cli.rest import AcceleratorApi

_HOLD: Final = 5  # seconds for which the service may hold a request

Table = tuple[Sequence[str], Sequence[Any]]
"""Headings and rows, or names and values."""


class ApiCommand(command.Command):
    """Command that sends requests to the Accelerator API."""

    log: logging.Logger

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the arguments of the command."""
        parser = super().get_parser(prog_name)
        self._add_arguments(parser)
        return parser

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command; there are none by default."""

    @property
    def api(self) -> AcceleratorApi:
        """Client over the connection of the program."""
        # Any: the client manager gets its attributes from the plugins.
        manager: Any = self.app.client_manager
        api: AcceleratorApi = manager.accelerator_lite
        return api

    @property
    def progress_stream(self) -> TextIO:
        """Stream for progress and remarks; standard output has only the result."""
        stream: TextIO = self.app.stderr
        return stream

    def wait(self, options: argparse.Namespace) -> None:
        """Show the progress of the last operation until its end, with ``--wait``.

        :raises CommandError: the operation has failed, or has not ended in time
        """
        if options.wait:
            path, query = self.api.operation, {'wait': _HOLD}
            waiting.wait_until_finished(
                lambda: waiting.measure_operation(
                    self.api.call('GET', path, query=query)
                ),
                self.progress_stream,
                options.timeout,
            )


class ListCommand(ApiCommand, command.Lister):
    """Command that shows a table."""


class ShowCommand(ApiCommand, command.ShowOne):
    """Command that shows one object."""
