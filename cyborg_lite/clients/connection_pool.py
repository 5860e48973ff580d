# SPDX-License-Identifier: Apache-2.0
"""Requests through a connection pool of urllib3, without the steps of requests."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

import requests
import urllib3
from keystoneauth1.session import TCPKeepAliveAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, select_proxy
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

# keystoneauth repeats requests, as its options demand.
_ONCE: Final = urllib3.Retry(total=False, redirect=False)


class PoolSender:
    """Sends requests to one service and reads the whole responses. Thread-safe."""

    # Any, here and below: requests allows text and bytes.
    def __init__(
        self, pool: urllib3.HTTPConnectionPool, headers: Mapping[str, Any]
    ) -> None:
        """Prepare requests.

        :param pool: connections to the service, without a proxy
        :param headers: headers that a request has unless it sets them itself
        """
        self._pool = pool
        self._headers = {name.lower(): (name, text) for name, text in headers.items()}

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float | None,
    ) -> requests.Response:
        """Send a request and read the response.

        :param timeout: seconds to connect, and then between two parts of the response
        :raises RequestException: no connection, a timeout, or no valid response
        """
        names = {name.lower() for name in headers}
        merged_headers = {
            name: text
            for key, (name, text) in self._headers.items()
            if key not in names
        }
        merged_headers.update(headers)
        with _translate_errors():
            answer = self._pool.urlopen(
                method,
                _select_target(url),
                body,
                merged_headers,
                retries=_ONCE,
                redirect=False,
                assert_same_host=False,
                timeout=urllib3.Timeout(connect=timeout, read=timeout),
            )
        request = requests.PreparedRequest()
        request.method, request.url, request.body = method, url, body
        request.headers = CaseInsensitiveDict(merged_headers)
        return _build_response(request, answer)


def _select_target(url: str) -> str:
    """Return path and query of a URL."""
    _, _, path = url.partition('://')[2].partition('/')
    return f'/{path}'


def _build_response(
    request: requests.PreparedRequest, answer: urllib3.BaseHTTPResponse
) -> requests.Response:
    response = requests.Response()
    response.request, response.url = request, request.url or ''
    response.status_code = answer.status
    response.reason = answer.reason or ''
    response.headers = CaseInsensitiveDict(answer.headers.items())
    response.encoding = get_encoding_from_headers(response.headers)
    # The pool has read and decoded the content, and has the connection back.
    response.raw = BytesIO(answer.data)
    return response


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the errors of urllib3 as those of requests, which keystoneauth expects."""
    try:
        yield
    except SSLError as error:
        raise requests.exceptions.SSLError(error) from error
    except ReadTimeoutError as error:
        raise requests.ReadTimeout(error) from error
    except NewConnectionError as error:
        raise requests.ConnectionError(error) from error
    except ConnectTimeoutError as error:
        raise requests.ConnectTimeout(error) from error
    except (HTTPError, OSError) as error:
        raise requests.ConnectionError(error) from error


class PoolAdapter(TCPKeepAliveAdapter):
    """Transport of requests whose connections may be used directly as well."""

    def create_sender(
        self, url: str, headers: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> PoolSender | None:
        """Return a sender for a service, or None if its requests need this class.

        :param url: URL of any request to the service
        :param headers: see ``PoolSender``
        :param settings: result of ``Session.merge_environment_settings``
        """
        if settings['stream'] or select_proxy(url, settings['proxies']):
            return None
        verify, cert = settings['verify'], settings['cert']
        request = requests.Request('GET', url).prepare()
        pool = self.get_connection_with_tls_context(request, verify, cert=cert)
        assert isinstance(pool, urllib3.HTTPConnectionPool)
        # The stubs of requests lack the types.
        self.cert_verify(pool, url, verify, cert)  # type: ignore[no-untyped-call]
        return PoolSender(pool, headers)
