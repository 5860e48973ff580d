# SPDX-License-Identifier: Apache-2.0
"""Real Keystone with SQLite and Fernet tokens, and users that request tokens.

It runs in a process of its own because it uses the global configuration of
oslo.config. ``python -m tests.servers.keystone prepare DIRECTORY`` creates its
files, serves on a free port, and prints the address when it listens.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import requests

PASSWORD: Final = 'secret'
"""Password of all users."""

_MODULE: Final = 'tests.servers.keystone'
_SERVED: Final = 'http://127.0.0.1:{port}/v3'
_CONFIGURATION: Final = """
[DEFAULT]
log_file = {directory}/keystone.log
[database]
connection = sqlite:///{directory}/keystone.sqlite
sqlite_synchronous = false
[fernet_tokens]
key_repository = {directory}/fernet-keys
[credential]
key_repository = {directory}/credential-keys
[identity]
password_hash_rounds = 4
"""

_LIMIT_OPTIONS: Final = """
[limits]
enabled = true
[oslo_limit]
auth_type = password
auth_url = {url}
username = limits-reader
password = {password}
user_domain_id = default
project_domain_id = default
project_name = limits-service
endpoint_service_type = {service_type}
"""


@dataclass(frozen=True)
class Person:
    """User, and the project in which the user has roles."""

    user: str
    project_id: str


class RealKeystone:
    """Client of the API with the rights of its first administrator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = requests.Session()
        self._http.headers['X-Auth-Token'] = self.token(
            'admin', {'project': {'name': 'admin', 'domain': {'id': 'default'}}}
        )
        self.publish('identity', url)  # unknown before it listened
        self._roles = {
            role['name']: role['id'] for role in self._ask('GET', 'roles')['roles']
        }

    def publish(self, kind: str, url: str) -> str:
        """Add a service to the catalog and return its id."""
        body = {'service': {'type': kind, 'name': kind}}
        service: str = self._ask('POST', 'services', body)['service']['id']
        for interface in ('public', 'internal'):
            endpoint = {'service_id': service, 'interface': interface, 'url': url}
            self._ask('POST', 'endpoints', {'endpoint': endpoint})
        return service

    def withdraw(self, service: str) -> None:
        """Remove a service and its endpoints from the catalog."""
        self._ask('DELETE', f'services/{service}')

    def register_limit(self, service: str, resource: str, default: int) -> None:
        """Register a limit of a resource, for projects without a limit of their own."""
        limit = {
            'service_id': service,
            'resource_name': resource,
            'default_limit': default,
        }
        self._ask('POST', 'registered_limits', {'registered_limits': [limit]})

    def create_limits_reader(self, service_type: str) -> str:
        """Create a user who may read limits; return the options of a conductor."""
        self.person('limits-reader', self.project('limits-service'), 'admin')
        return _LIMIT_OPTIONS.format(
            url=self.url, password=PASSWORD, service_type=service_type
        )

    def limit_project(
        self, service: str, project_id: str, resource: str, limit: int
    ) -> None:
        """Set a limit of a project."""
        values = {
            'service_id': service,
            'project_id': project_id,
            'resource_name': resource,
            'resource_limit': limit,
        }
        self._ask('POST', 'limits', {'limits': [values]})

    def token(self, user: str, scope: Mapping[str, Any] | str = 'unscoped') -> str:
        """Return a token; ``scope`` is as in the API."""
        account = {'name': user, 'domain': {'id': 'default'}, 'password': PASSWORD}
        identity = {'methods': ['password'], 'password': {'user': account}}
        answer = self._http.post(
            f'{self.url}/auth/tokens',
            json={'auth': {'identity': identity, 'scope': scope}},
        )
        answer.raise_for_status()
        return answer.headers['X-Subject-Token']

    def token_of(self, person: Person) -> str:
        """Return a token for the project of the person."""
        return self.token(person.user, {'project': {'id': person.project_id}})

    def project(self, name: str) -> str:
        """Create a project and return its id."""
        body = {'project': {'name': name, 'domain_id': 'default'}}
        project_id: str = self._ask('POST', 'projects', body)['project']['id']
        return project_id

    def person(self, user: str, project_id: str, *roles: str) -> Person:
        """Create a user with roles in a project."""
        account = {'name': user, 'password': PASSWORD, 'domain_id': 'default'}
        created = self._ask('POST', 'users', {'user': account})['user']['id']
        for role in roles:
            role_id = self._roles[role]
            self._ask('PUT', f'projects/{project_id}/users/{created}/roles/{role_id}')
        return Person(user, project_id)

    def grant_domain(self, person: Person, role: str) -> None:
        """Grant a role on the default domain."""
        user_id = self._ask('GET', f'users?name={person.user}')['users'][0]['id']
        role_id = self._roles[role]
        self._ask('PUT', f'domains/default/users/{user_id}/roles/{role_id}')

    def disable(self, person: Person) -> None:
        """Refuse a user from now on, with all tokens of the user."""
        user_id = self._ask('GET', f'users?name={person.user}')['users'][0]['id']
        self._ask('PATCH', f'users/{user_id}', {'user': {'enabled': False}})

    def revoke(self, token: str) -> None:
        answer = self._http.delete(
            f'{self.url}/auth/tokens', headers={'X-Subject-Token': token}
        )
        answer.raise_for_status()

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the JSON answer."""
        answer = self._http.request(method, f'{self.url}/{path}', json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None


@pytest.fixture(scope='session')
def keystone(request: pytest.FixtureRequest) -> RealKeystone:
    """Return the Keystone of this process. Test modules import this fixture."""
    return _start_keystone(request.config)


@functools.cache
def _start_keystone(config: pytest.Config) -> RealKeystone:
    directory = tempfile.mkdtemp(prefix='keystone-')
    config.add_cleanup(functools.partial(shutil.rmtree, directory, ignore_errors=True))
    process = subprocess.Popen(
        [sys.executable, '-m', _MODULE, 'prepare', directory],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {'PYTHONWARNINGS': 'ignore'},
    )
    config.add_cleanup(functools.partial(_stop, process))
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{'):
            return RealKeystone(json.loads(line)['url'])
    log = Path(directory, 'keystone.log')
    pytest.fail(f'Keystone did not start: {log.read_text()[-2000:]}')


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()


def prepare(directory: Path) -> None:
    """Create the database, the keys and the first administrator."""
    # Only this process may load the package, because it registers global options.
    import keystone.conf
    from keystone.cmd import cli

    file = directory / 'keystone.conf'
    file.write_text(_CONFIGURATION.format(directory=directory))
    owner = [f'--keystone-user={os.getuid()}', f'--keystone-group={os.getgid()}']
    for command in (
        ['db_sync'],
        ['fernet_setup', *owner],
        ['credential_setup', *owner],
        ['bootstrap', f'--bootstrap-password={PASSWORD}'],
    ):
        # Each command registers its options again, which needs a new process.
        keystone.conf.CONF.reset()
        cli.main(['keystone-manage', '--config-file', str(file), *command])


def serve(directory: Path) -> None:
    """Serve until the process is stopped."""
    import waitress
    from keystone.server.flask.core import initialize_application

    file = directory / 'keystone.conf'
    application = initialize_application('public', config_files=[str(file)])
    server = waitress.create_server(application, listen='127.0.0.1:0', threads=1)
    url = _SERVED.format(port=server.effective_port)
    print(json.dumps({'url': url}), flush=True)
    server.run()


if __name__ == '__main__':
    step, place = sys.argv[1:]
    del sys.argv[1:]  # the package would parse them
    if step == 'prepare':
        prepare(Path(place))
        # The package cannot be started twice in one process.
        os.execv(sys.executable, [sys.executable, '-m', _MODULE, 'serve', place])
    serve(Path(place))
