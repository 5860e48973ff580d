# SPDX-License-Identifier: Apache-2.0
"""Commands of the ``openstack`` plugin against the API in this process.

The parser, the command and the formatter are real. The connection of the program is
replaced by the WSGI application.
"""

import argparse
import io
import json
import types
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final
from urllib.parse import urlencode

import requests

from cyborg_lite.cli.rest import AcceleratorApi
from tests.support.api.conversation import PROJECT, SERVICE_TOKEN, Client

GROUP: Final = 'openstack.accelerator_lite.v2'


_PROJECT: Final = types.SimpleNamespace(id=PROJECT, name='physics')
_IDENTITY: Final = types.SimpleNamespace(
    projects=types.SimpleNamespace(list=lambda: [_PROJECT])
)


class WsgiAdapter:
    """Sends requests to the application as a proxy of openstacksdk does."""

    def __init__(self, client: Client) -> None:
        self._client = client

    # Any: as in the library.
    def request(self, url: str, method: str, **options: Any) -> Any:
        """Send a request and return the response."""
        query = urlencode(options['params'])
        sent_headers = dict(options['headers'])
        if 'X-Service-Token' in sent_headers:
            sent_headers.update(SERVICE_TOKEN)
        answer = self._client.at(options['microversion']).send(
            method,
            f'{url}?{query}' if query else url,
            options.get('json'),
            headers=sent_headers,
        )
        response = requests.Response()
        response.status_code = answer.status
        response._content = answer.body
        response.headers.update(answer.headers)
        return response


@dataclass(frozen=True)
class Result:
    """Output of a command."""

    out: str
    error: str

    @property
    def json(self) -> Any:
        """The parsed standard output."""
        return json.loads(self.out)


def list_commands() -> dict[str, type[Any]]:
    """Return the classes of the commands by the words after ``accelerator``."""
    points = metadata.entry_points(group=GROUP)
    return {
        point.name.removeprefix('accelerator_').replace('_', ' '): point.load()
        for point in points
    }


def run_command(client: Client, words: str, *arguments: str) -> Result:
    """Run a command.

    :param words: after ``openstack accelerator``, for example ``service list``
    :raises Exception: the error that the program would print in one line
    """
    out, error = io.StringIO(), io.StringIO()
    app = types.SimpleNamespace(
        client_manager=types.SimpleNamespace(
            accelerator_lite=AcceleratorApi(WsgiAdapter(client)), identity=_IDENTITY
        ),
        stdout=out,
        stderr=error,
    )
    command = list_commands()[words](app, None)
    parser: argparse.ArgumentParser = command.get_parser(words)
    command.run(parser.parse_args(arguments))
    return Result(out.getvalue(), error.getvalue())


def read_json(client: Client, words: str, *arguments: str) -> Any:
    """Run a command with ``-f json`` and return its output."""
    return run_command(client, words, *arguments, '-f', 'json').json
