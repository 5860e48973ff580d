# SPDX-License-Identifier: Apache-2.0
"""Requests to other OpenStack services, with the errors of their libraries translated.

keystoneauth is used in this package only: a request returns a response that the caller
accepts, or raises an error of ``cyborg_lite.errors``.
"""

import copy
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from http import HTTPStatus
from typing import Any, Final, Self

import requests
from keystoneauth1 import exceptions as keystoneauth
from keystoneauth1 import loading, plugin, token_endpoint
from keystoneauth1.adapter import Adapter
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import log

from cyborg_lite.clients.deadlines import DeadlineAdapter
from cyborg_lite.errors.daemons import (
    ConfigurationError,
    RemoteError,
    ServiceUnavailable,
)

LOG = log.getLogger(__name__)

# At least the number of threads that send concurrently. With the default of requests,
# 10, the default of 16 job workers would close and reopen connections, and log it.
_MAX_CONNECTIONS: Final = 32
_MAX_REASON_LENGTH: Final = 200  # characters
# The default of an adapter limits the rate by the wall clock. After a backward step
# every request would wait until the clock reaches the start of the process again.
_UNLIMITED: Final = nullcontext()

NO_CREDENTIALS: Final = 'admin'
"""Token that services without authentication, e.g. Placement with noauth2, accept."""


class Remote:
    """Connection to one OpenStack service. Thread-safe; connections are kept open."""

    def __init__(
        self, name: str, adapter: Adapter, error_key: str | None = None
    ) -> None:
        self.name = name
        self._adapter = adapter
        # Key of the JSON object with which the service answers 404. Another answer is
        # of a proxy, which has found no service. None: the service answers in any
        # format.
        self._error_key = error_key
        # Called after each request with the method and the HTTP status; the status is
        # None if no response was received.
        self.observer: Callable[[str, int | None], None] | None = None
        self._outage = ''  # that was logged; empty: the service answers

    def with_microversion(self, microversion: str) -> Self:
        """Return a copy that shares the connections and sends another microversion."""
        remote = copy.copy(self)
        remote._adapter = copy.copy(self._adapter)
        remote._adapter.default_microversion = microversion
        return remote

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: Collection[int] = (),
        stream: bool = False,
    ) -> requests.Response:
        """Send a request and wait for the response.

        :param body: sent as JSON
        :param accept: statuses of 400 and above that the caller handles
        :param stream: leave the content of the response to be read by the caller
        :raises ServiceUnavailable: no connection, a timeout, status 5xx, or a 404 that
            is not of the service
        :raises RemoteError: any other status of 300 and above
        """
        status: int | None = None
        context, headers = oslo_context.get_current(), {}
        if context is not None:
            # The global request id then appears in the logs of all services.
            headers = {'X-OpenStack-Request-ID': context.global_id}
        try:
            with self.translate_errors():
                response = self._adapter.request(
                    path,
                    method,
                    json=body,
                    headers=headers,
                    raise_exc=False,
                    stream=stream,
                    rate_semaphore=_UNLIMITED,
                )
                status = response.status_code
        finally:
            if self.observer is not None:
                self.observer(method, status)
        if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR and self._outage:
            LOG.info('%s answers again', self.name)
            self._outage = ''
        if response.status_code >= 300:
            self._check_answer(response, path, accept)
        return response

    def _log_outage(self, outage: str, reason: object) -> None:
        """Log once that the service fails, until it answers or fails otherwise."""
        if outage != self._outage:
            self._outage = outage
            LOG.warning('%s %s: %s', self.name, outage, reason)

    def _check_answer(
        self, response: requests.Response, path: str, accept: Collection[int]
    ) -> None:
        """Raise the error of a response, unless the caller handles its status."""
        key, body = self._error_key, _parse_object(response) or {}
        if response.status_code == 404 and key is not None and key not in body:
            LOG.warning(
                'Status 404 for %s is not an answer of %s; check its endpoint: %s',
                path,
                self.name,
                _error_text(response),
            )
            raise ServiceUnavailable(what=self.name)
        if response.status_code not in accept:
            raise self.to_error(response)

    # Any: the JSON object of a service.
    def read(self, response: requests.Response) -> Any:
        """Return the JSON object in a response.

        :raises ServiceUnavailable: the content is cut, or is the page of a proxy
        """
        body = _parse_object(response)
        if body is None:
            LOG.warning(
                '%s answered %d without a JSON object: %s',
                self.name,
                response.status_code,
                response.headers.get('Content-Type'),
            )
            raise ServiceUnavailable(what=self.name)
        return body

    def to_error(self, response: requests.Response) -> RemoteError | ServiceUnavailable:
        """Convert a response with status 300 or above to an error."""
        status, reason = response.status_code, _error_text(response)
        if status >= 500:
            self._log_outage(f'answers {status}', reason)
            return ServiceUnavailable(what=self.name)
        return RemoteError(service=self.name, status=status, reason=reason)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate the errors of keystoneauth and requests.

        :raises ServiceUnavailable: the service, or Keystone, does not answer
        :raises RemoteError: Keystone rejects the credentials
        """
        try:
            yield
        except keystoneauth.HttpError as error:
            # Requests are sent with raise_exc=False, so the error comes from Keystone.
            if error.http_status >= 500:
                outage = f'is not asked, because Keystone answers {error.http_status}'
                self._log_outage(outage, error.message)
                raise ServiceUnavailable(what='Keystone') from error
            raise RemoteError(
                service='Keystone', status=error.http_status, reason=error.message
            ) from error
        except (keystoneauth.ClientException, requests.RequestException) as error:
            self._log_outage('does not answer', error)
            raise ServiceUnavailable(what=self.name) from error


def connect(
    conf: cfg.ConfigOpts,
    group: str,
    name: str,
    microversion: str | None = None,
    error_key: str | None = None,
) -> Remote | None:
    """Create the connection that a section configures, or None if it is empty.

    The section is empty if it sets neither credentials nor an endpoint. No request is
    sent. Call it once per process and section: each call creates a session with its
    own connections.

    :param error_key: see ``Remote``
    :raises ConfigurationError: the credentials are incomplete
    """
    auth = _load_auth(conf, group)
    if auth is None:
        return None
    session = loading.load_session_from_conf_options(
        conf, group, auth=auth, session=_create_session()
    )
    adapter = loading.load_adapter_from_conf_options(
        conf,
        group,
        session=session,
        default_microversion=microversion,
        user_agent='cyborg-lite',
    )
    return Remote(name, adapter, error_key)


def _load_auth(conf: cfg.ConfigOpts, group: str) -> plugin.BaseAuthPlugin | None:
    section = conf[group]
    if section.auth_section or section.auth_type not in (None, '', 'none'):
        try:
            return loading.load_auth_from_conf_options(conf, group)
        except keystoneauth.ClientException as error:
            raise ConfigurationError(reason=f'[{group}]: {error}') from None
    if section.endpoint_override is None:
        return None
    return token_endpoint.Token(section.endpoint_override, NO_CREDENTIALS)


def _create_session() -> requests.Session:
    session = requests.Session()
    for scheme in ('http://', 'https://'):
        session.mount(scheme, DeadlineAdapter(pool_maxsize=_MAX_CONNECTIONS))
    return session


# Any: values of JSON.
def _parse_object(response: requests.Response) -> dict[str, Any] | None:
    """Return the JSON object in a response, or None if there is none."""
    try:
        body = response.json()
    except (requests.RequestException, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _error_text(response: requests.Response) -> str:
    """Extract the error text from a response, in any of the formats of OpenStack."""
    body = _parse_object(response) or {}
    errors = body.get('errors')
    for error in (*(errors if isinstance(errors, list) else ()), *body.values()):
        if isinstance(error, dict) and ('detail' in error or 'message' in error):
            text = str(error.get('detail') or error.get('message'))
            return ' '.join(text.split())[:_MAX_REASON_LENGTH]
    return str(response.reason)
