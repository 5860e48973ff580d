# SPDX-License-Identifier: Apache-2.0
"""A real Keystone with SQLite and Fernet tokens, and people to ask for tokens.

It runs in a process of its own, since it lives on the global configuration of
oslo.config: ``python -m tests.fakes.real_keystone prepare DIRECTORY`` makes what it
needs there, serves on a free port, and prints the address when it listens.
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
"""Of everybody."""

_MODULE: Final = 'tests.fakes.real_keystone'
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


@dataclass(frozen=True)
class Person:
    """A user, and the project where the user has roles."""

    user: str
    project_id: str


class RealKeystone:
    """Its API, as far as tests need it, with the rights of its first admin."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = requests.Session()
        self._http.headers['X-Auth-Token'] = self.token(
            'admin', {'project': {'name': 'admin', 'domain': {'id': 'default'}}}
        )
        self.publish('identity', url)  # could not be known before it listened
        self._roles = {
            role['name']: role['id'] for role in self._ask('GET', 'roles')['roles']
        }

    def publish(self, kind: str, url: str) -> str:
        """Write a service into the catalog; its id."""
        body = {'service': {'type': kind, 'name': kind}}
        service: str = self._ask('POST', 'services', body)['service']['id']
        for interface in ('public', 'internal'):
            endpoint = {'service_id': service, 'interface': interface, 'url': url}
            self._ask('POST', 'endpoints', {'endpoint': endpoint})
        return service

    def withdraw(self, service: str) -> None:
        """Strike it from the catalog, with its endpoints."""
        self._ask('DELETE', f'services/{service}')

    def token(self, user: str, scope: Mapping[str, Any] | str = 'unscoped') -> str:
        """``scope`` as the API has it."""
        who = {'name': user, 'domain': {'id': 'default'}, 'password': PASSWORD}
        identity = {'methods': ['password'], 'password': {'user': who}}
        answer = self._http.post(
            f'{self.url}/auth/tokens',
            json={'auth': {'identity': identity, 'scope': scope}},
        )
        answer.raise_for_status()
        return answer.headers['X-Subject-Token']

    def token_of(self, person: Person) -> str:
        """For the project of that person."""
        return self.token(person.user, {'project': {'id': person.project_id}})

    def project(self, name: str) -> str:
        """The id of a new project."""
        body = {'project': {'name': name, 'domain_id': 'default'}}
        project_id: str = self._ask('POST', 'projects', body)['project']['id']
        return project_id

    def person(self, user: str, project_id: str, *roles: str) -> Person:
        """A new user with those roles."""
        who = {'name': user, 'password': PASSWORD, 'domain_id': 'default'}
        made = self._ask('POST', 'users', {'user': who})['user']['id']
        for role in roles:
            role_id = self._roles[role]
            self._ask('PUT', f'projects/{project_id}/users/{made}/roles/{role_id}')
        return Person(user, project_id)

    def grant_domain(self, person: Person, role: str) -> None:
        """On the domain that everything here is in."""
        found = self._ask('GET', f'users?name={person.user}')['users'][0]['id']
        role_id = self._roles[role]
        self._ask('PUT', f'domains/default/users/{found}/roles/{role_id}')

    def revoke(self, token: str) -> None:
        answer = self._http.delete(
            f'{self.url}/auth/tokens', headers={'X-Subject-Token': token}
        )
        answer.raise_for_status()

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer is JSON in the form that the caller knows."""
        answer = self._http.request(method, f'{self.url}/{path}', json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None


@pytest.fixture(scope='session')
def keystone(request: pytest.FixtureRequest) -> RealKeystone:
    """The one of this process. Import it where a test asks for it."""
    return _started(request.config)


@functools.cache
def _started(config: pytest.Config) -> RealKeystone:
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
    """Make its database, its keys, and its first admin."""
    # Only a process of its own may load the package: it registers what it likes.
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
        # Each command registers its options anew, which is for a new process only.
        keystone.conf.CONF.reset()
        cli.main(['keystone-manage', '--config-file', str(file), *command])


def serve(directory: Path) -> None:
    """Answer until the process is ended."""
    from cheroot import wsgi
    from keystone.server.flask.core import initialize_application

    file = directory / 'keystone.conf'
    application = initialize_application('public', config_files=[str(file)])
    server = wsgi.Server(('127.0.0.1', 0), application, numthreads=1)
    server.prepare()
    url = _SERVED.format(port=server.bind_addr[1])
    print(json.dumps({'url': url}), flush=True)
    server.serve()


if __name__ == '__main__':
    step, place = sys.argv[1:]
    del sys.argv[1:]  # the package would take them for its own
    if step == 'prepare':
        prepare(Path(place))
        # The package cannot be started over in the same process.
        os.execv(sys.executable, [sys.executable, '-m', _MODULE, 'serve', place])
    serve(Path(place))
