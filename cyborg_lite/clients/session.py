# SPDX-License-Identifier: Apache-2.0
"""Requests to other services of the cloud, and what goes wrong with them in our words.

Nothing above this room knows keystoneauth: a request either has an answer that its
sender expects, or raises one of our errors.
"""

import copy
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, Self

import requests
from keystoneauth1 import exceptions as keystoneauth
from keystoneauth1 import loading, plugin, token_endpoint
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import TCPKeepAliveAdapter
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import log

from cyborg_lite.exceptions import RemoteError, ServiceUnavailable

LOG = log.getLogger(__name__)

# As many as threads may want one at once; the library's default of 10 would close and
# reopen connections, and say so in the log, under the default worker pool of 16.
_CONNECTIONS: Final = 32
_LONGEST_REASON: Final = 200

NO_CREDENTIALS: Final = 'admin'
"""The token that Placement's noauth2, and others like it, take for an admin."""


class Remote:
    """One service of the cloud. Safe for threads; keeps its connections open."""

    def __init__(self, name: str, adapter: Adapter) -> None:
        self.name = name
        self._adapter = adapter
        # Who counts: called with the method and the status, None for no answer.
        self.watcher: Callable[[str, int | None], None] | None = None

    def at(self, microversion: str) -> Self:
        """The same service over the same connections, by another microversion."""
        other = copy.copy(self)
        other._adapter = copy.copy(self._adapter)
        other._adapter.default_microversion = microversion
        return other

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: Collection[int] = (),
        stream: bool = False,
    ) -> requests.Response:
        """Send a request and wait for the answer.

        ``body`` is sent as JSON. ``accept`` names statuses from 400 on that the
        caller reads itself. With ``stream`` the content is left to be read.

        :raises ServiceUnavailable: no connection, no answer in time, or 5xx
        :raises RemoteError: any other refusal
        """
        status: int | None = None
        try:
            with self.translated():
                answer = self._adapter.request(
                    path,
                    method,
                    json=body,
                    headers=_request_id(),
                    raise_exc=False,
                    stream=stream,
                )
                status = answer.status_code
        finally:
            if self.watcher is not None:
                self.watcher(method, status)
        if answer.status_code < 400 or answer.status_code in accept:
            return answer
        raise self.refusal(answer)

    def refusal(self, answer: requests.Response) -> RemoteError | ServiceUnavailable:
        """What an answer from 400 on means to us."""
        if answer.status_code >= 500:
            LOG.warning('%s: %s', self.name, _said(answer))
            return ServiceUnavailable(what=self.name)
        return RemoteError(
            service=self.name, status=answer.status_code, reason=_said(answer)
        )

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn the errors of the libraries into ours.

        :raises ServiceUnavailable: it, or Keystone on the way to it, is away
        :raises RemoteError: Keystone refuses our credentials
        """
        try:
            yield
        except keystoneauth.HttpError as error:
            # Ours are not raised, so this is Keystone's.
            if error.http_status >= 500:
                raise ServiceUnavailable(what='Keystone') from error
            raise RemoteError(
                service='Keystone', status=error.http_status, reason=error.message
            ) from error
        except (keystoneauth.ClientException, requests.RequestException) as error:
            LOG.warning('%s does not answer: %s', self.name, error)
            raise ServiceUnavailable(what=self.name) from error


def connect(
    conf: cfg.ConfigOpts, group: str, name: str, microversion: str | None = None
) -> Remote | None:
    """A service by its section of the configuration. Connects when first used.

    Call it once in a process: each call makes a session with connections of its own.
    None: the section gives neither credentials nor an address.
    """
    auth = _auth(conf, group)
    if auth is None:
        return None
    session = loading.load_session_from_conf_options(
        conf, group, auth=auth, session=_pooled()
    )
    adapter = loading.load_adapter_from_conf_options(
        conf,
        group,
        session=session,
        default_microversion=microversion,
        user_agent='cyborg-lite',
    )
    return Remote(name, adapter)


def _auth(conf: cfg.ConfigOpts, group: str) -> plugin.BaseAuthPlugin | None:
    section = conf[group]
    if section.auth_section or section.auth_type not in (None, '', 'none'):
        return loading.load_auth_from_conf_options(conf, group)
    if section.endpoint_override is None:
        return None
    return token_endpoint.Token(section.endpoint_override, NO_CREDENTIALS)


def _pooled() -> requests.Session:
    session = requests.Session()
    for scheme in ('http://', 'https://'):
        session.mount(scheme, TCPKeepAliveAdapter(pool_maxsize=_CONNECTIONS))
    return session


def _request_id() -> dict[str, str]:
    """The caller's, so that one id is found in the logs of every service."""
    caller = oslo_context.get_current()
    return {} if caller is None else {'X-OpenStack-Request-ID': caller.global_id}


def _said(answer: requests.Response) -> str:
    """What the service says is wrong, in whichever of the usual forms it says it."""
    try:
        body = answer.json()
    except requests.RequestException:
        return str(answer.reason)
    if isinstance(body, dict):
        for part in (*(body.get('errors') or ()), *body.values()):
            if isinstance(part, dict) and ('detail' in part or 'message' in part):
                said = str(part.get('detail') or part.get('message'))
                return ' '.join(said.split())[:_LONGEST_REASON]
    return str(answer.reason)
