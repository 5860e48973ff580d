# SPDX-License-Identifier: Apache-2.0
"""Requests to the Accelerator API over a connection of openstacksdk.

The ``openstack`` commands and the dashboard share this client. It imports no library,
because both run on machines without the service.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, Self
from urllib.parse import parse_qsl, quote, urlsplit

VERSION: Final = '2.7'
"""Microversion of all requests."""

_ACCEPTED: Final = 202
_LARGEST_SUCCESS: Final = 299


class Response(Protocol):
    """The part of ``requests.Response`` that is read here."""

    status_code: int
    content: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        """Return the parsed body."""


class Adapter(Protocol):
    """The part of a proxy of openstacksdk that sends requests."""

    def request(self, url: str, method: str, **options: Any) -> Any:
        """Send a request to a path of the service and return the response."""


class ApiError(Exception):
    """The service refuses a request. The text has one line."""

    def __init__(self, status: int, text: str) -> None:
        """Store the arguments.

        :param status: HTTP status of the response
        """
        super().__init__(text)
        self.status = status


class AcceleratorApi:
    """Sends requests. An error response becomes an error with one line of text."""

    def __init__(self, adapter: Adapter, service_token: str = '') -> None:
        """Store the arguments.

        :param service_token: sent beside the token of the user; empty: none is sent
        """
        self._adapter = adapter
        self.operation = ''  # path of the last operation that a call has started
        self._headers = {'Accept': 'application/json'}
        if service_token:
            self._headers['X-Service-Token'] = service_token

    def with_service_token(self, token: str) -> Self:
        """Return a client that also sends a service token."""
        return type(self)(self._adapter, token)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        generation: int | None = None,
    ) -> Any:
        """Send a request and return the JSON of the response; None: it has no body.

        :param path: quoted, below the version of the API, for example ``/devices``
        :param generation: that the object must have, else the service answers 409;
            None: any
        :raises ApiError: the service refuses the request
        """
        options: dict[str, Any] = {'json': body} if body is not None else {}
        headers = self._headers
        if generation is not None:
            headers = {**headers, 'If-Match': f'"{generation}"'}
        arguments = {name: value for name, value in (query or {}).items() if value}
        response = self._adapter.request(
            path,
            method,
            headers=headers,
            params=arguments,
            microversion=VERSION,
            raise_exc=False,
            **options,
        )
        if response.status_code > _LARGEST_SUCCESS:
            raise _build_error(response)
        name = response.headers.get('Location', '').rpartition('/operations/')[2]
        if response.status_code == _ACCEPTED:
            self.operation = f'/operations/{name}'
        return response.json() if response.content else None

    def list_all(
        self, path: str, key: str, query: Mapping[str, Any] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the elements of all pages of a collection.

        :param key: name of the list in the response
        :raises ApiError: the service refuses the request
        """
        page: Mapping[str, Any] | None = query or {}
        while page is not None:
            answer = self.call('GET', path, query=page)
            yield from answer[key]
            page = _read_next_query(answer.get(f'{key}_links', ()))


def quote_path(text: str) -> str:
    """Return the text as one segment of a path."""
    return quote(text, safe='')


def _read_next_query(links: Any) -> dict[str, str] | None:
    """Return the query of the next page; None: this page is the last."""
    for link in links:
        if link['rel'] == 'next':
            return dict(parse_qsl(urlsplit(link['href']).query))
    return None


def _build_error(response: Response) -> ApiError:
    text = f'HTTP {response.status_code}'
    try:
        errors = response.json()['errors']
        text = ' '.join(error['detail'] for error in errors) or text
    except (ValueError, KeyError, TypeError):
        text = f'{text} from the accelerator service'  # the body is of a proxy
    return ApiError(response.status_code, ' '.join(text.split()))
