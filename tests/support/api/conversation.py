# SPDX-License-Identifier: Apache-2.0
"""A test client for the whole WSGI application in this process."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import webob
from oslo_config import cfg

from cyborg_lite.api.app import assemble
from cyborg_lite.conf import api as api_options
from tests.support.api import api_document
from tests.support.api.conductor import LocalConductor

PROJECT = 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
OTHER_PROJECT = 'cccccccccccccccccccccccccccccccc'
HOST = 'http://controller:6666'

Headers = dict[str, str]


def build_persona(roles: str, project: str | None = PROJECT, **extra: str) -> Headers:
    """Return the headers that the Keystone middleware would set."""
    headers = {'X-User-Id': 'a' * 32, 'X-Roles': roles, **extra}
    return headers if project is None else {**headers, 'X-Project-Id': project}


ADMIN = build_persona('admin,manager,member,reader')
MANAGER = build_persona('manager,member,reader')
MEMBER = build_persona('member,reader')
READER = build_persona('reader')
SERVICE_TOKEN = {'X-Service-Roles': 'service'}
NOVA = {**MEMBER, **SERVICE_TOKEN}
OTHER_MEMBER = build_persona('member,reader', OTHER_PROJECT)


def build_configuration(**api: Any) -> cfg.ConfigOpts:
    """Return the configuration of a service without authentication.

    :param api: options of the section ``[api]``
    """
    conf = cfg.ConfigOpts()
    conf.register_opts(api_options.OPTIONS, group=api_options.GROUP)
    conf([], project='cyborg-lite', default_config_files=[], default_config_dirs=[])
    for name, value in {'auth_strategy': 'noauth', **api}.items():
        conf.set_override(name, value, group='api')
    return conf


def build_policy_client(directory: Path, rules: str) -> 'Client':
    """Return a client of a service with a policy file."""
    path = directory / 'policy.yaml'
    path.write_text(rules)
    conf, conductor = build_configuration(), LocalConductor()
    assemble(conf, conductor.client)  # oslo.policy registers its options
    conf.set_override('policy_file', str(path), group='oslo_policy')
    return Client(conductor, assemble(conf, conductor.client))


class Answer:
    """A response with its parsed body."""

    def __init__(self, response: webob.Response) -> None:
        self.status: int = response.status_int
        self.headers = response.headers
        self.body: bytes = response.body
        self.response = response

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)

    @property
    def fault(self) -> str:
        """The text of an error that the SDK shows."""
        return str(json.loads(self.json['error_message'])['faultstring'])


@dataclass
class Client:
    """Client with the headers of one persona at one microversion."""

    conductor: LocalConductor = field(default_factory=LocalConductor)
    application: Any = None  # any WSGI application
    headers: Headers = field(default_factory=lambda: dict(ADMIN))
    version: str | None = None
    prefix: str = '/v2'
    is_described: bool = True  # True: responses are checked against the API document

    def __post_init__(self) -> None:
        if self.application is None:
            self.application = assemble(build_configuration(), self.conductor.client)

    def as_(self, headers: Headers, version: str | None = None) -> 'Client':
        """Return a client of the same service with another persona."""
        version = version or self.version
        return Client(self.conductor, self.application, headers, version, self.prefix)

    def at(self, version: str) -> 'Client':
        """Return a client with another microversion."""
        return self.as_(self.headers, version)

    def configure(self, **api: Any) -> 'Client':
        """Return a client of another API of the same conductor.

        :param api: options of the section ``[api]``
        """
        application = assemble(build_configuration(**api), self.conductor.client)
        return Client(self.conductor, application, self.headers, self.version)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Headers | None = None,
    ) -> Answer:
        """Send a request.

        :param path: quoted, below ``prefix``
        :param raw: body that is not JSON
        """
        if body is not None:
            raw = json.dumps(body).encode()
        request = webob.Request.blank(self.prefix + path, base_url=HOST)
        request.method = method
        request.headers.update(self.headers)
        if self.version is not None:
            request.headers['OpenStack-API-Version'] = f'accelerator {self.version}'
        if raw is not None:
            request.body = raw
            request.content_type = 'application/json'
        request.headers.update(headers or {})
        response = request.get_response(self.application)
        if self.is_described:
            api_document.check_response(request, response)
        return Answer(response)

    def get(self, path: str, headers: Headers | None = None) -> Answer:
        """Send a GET."""
        return self.send('GET', path, headers=headers)

    def post(self, path: str, body: Any = None) -> Answer:
        """Send a POST."""
        return self.send('POST', path, body)

    def patch(self, path: str, body: Any = None) -> Answer:
        """Send a PATCH."""
        return self.send('PATCH', path, body)

    def delete(self, path: str) -> Answer:
        """Send a DELETE."""
        return self.send('DELETE', path)

    # --- common first steps ---

    def create_profile(
        self, name: str = 'dp1', *groups: dict[str, Any]
    ) -> dict[str, Any]:
        """Create a device profile as an administrator."""
        body = {'name': name, 'groups': list(groups) or [{'resources:FPGA': '1'}]}
        answer = self.as_(ADMIN).post('/device_profiles', [body])
        assert answer.status == 201, answer.body
        created: dict[str, Any] = answer.json
        return created

    def create_arqs(self, name: str = 'dp1') -> list[dict[str, Any]]:
        """Create the ARQs of a device profile."""
        answer = self.post('/accelerator_requests', {'device_profile_name': name})
        assert answer.status == 201, answer.body
        created: list[dict[str, Any]] = answer.json['arqs']
        return created
