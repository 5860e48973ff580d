# SPDX-License-Identifier: Apache-2.0
"""Client of the REST interfaces of a real OpenStack, and its servers."""

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import requests

from devstack.launcher.processes import Child
from tests.servers.keystone import Person, RealKeystone

_LIMIT: Final = 120.0  # seconds after which a wait fails
_PAUSE: Final = 0.2
_VERSIONS: Final = {
    # From 2.95 on an evacuated server stays stopped.
    'compute': 'compute 2.90',
    'placement': 'placement 1.39',
    'accelerator': 'accelerator 2.4',
}


class OpenStackClient:
    """Calls the services as a person, by default as the operator."""

    def __init__(self, keystone: RealKeystone, urls: Mapping[str, str]) -> None:
        """Store the arguments.

        :param urls: base URL by service type
        """
        self.keystone = keystone
        self.urls = dict(urls)
        self.image = ''  # of the servers
        self.children: dict[str, Child] = {}
        """Running processes, which must not end while a test waits."""
        self._tokens: dict[Person, str] = {}
        self._prepare_persons()

    def _prepare_persons(self) -> None:
        self.service_project = self.keystone.project('service')
        tenant, foreign_project = (
            self.keystone.project('lab'),
            self.keystone.project('shop'),
        )
        self.admin = self.keystone.person('operator', self.service_project, 'admin')
        self.owner = self.keystone.person('owner', tenant, 'member')
        self.foreign_member = self.keystone.person(
            'stranger', foreign_project, 'member'
        )

    # --- REST ---

    def compute(
        self, method: str, path: str, body: Any = None, user: Person | None = None
    ) -> Any:
        """Call Nova; return the JSON of the answer, of any shape."""
        return self._call('compute', method, path, body, user)

    def accelerator(
        self, method: str, path: str, body: Any = None, user: Person | None = None
    ) -> Any:
        """Call cyborg_lite; return the JSON of the answer, of any shape."""
        return self._call('accelerator', method, path, body, user)

    def placement(self, method: str, path: str, body: Any = None) -> Any:
        """Call Placement; return the JSON of the answer, of any shape."""
        return self._call('placement', method, path, body, None)

    def status(
        self, service: str, method: str, path: str, user: Person | None = None
    ) -> int:
        """Return the HTTP status of a call without a body."""
        return self.ask(service, method, path, user=user).status_code

    def _call(
        self, service: str, method: str, path: str, body: Any, user: Person | None
    ) -> Any:
        answer = self.ask(service, method, path, body, user)
        assert answer.ok, f'{method} {path}: {answer.status_code} {answer.text}'
        return answer.json() if answer.content else None

    def ask(
        self,
        service: str,
        method: str,
        path: str,
        body: Any = None,
        user: Person | None = None,
    ) -> requests.Response:
        """Send a request; return the answer, whatever its status is."""
        headers = {
            'X-Auth-Token': self._token(user or self.admin),
            'OpenStack-API-Version': _VERSIONS[service],
        }
        url = self.urls[service] + path
        return requests.request(method, url, json=body, headers=headers, timeout=60)

    def _token(self, user: Person) -> str:
        if user not in self._tokens:
            self._tokens[user] = self.keystone.token_of(user)
        return self._tokens[user]

    # --- what tests do ---

    def until(self, condition: Callable[[], Any], description: str) -> Any:
        """Return the first true value of the condition."""
        deadline = time.monotonic() + _LIMIT
        while not (value := condition()):
            for name, child in self.children.items():
                assert child.status is None, f'{name} ended: {child.tail()}'
            assert time.monotonic() < deadline, (
                f'waited {_LIMIT:.0f} s until {description}'
            )
            time.sleep(_PAUSE)
        return value

    def providers(self) -> list[dict[str, Any]]:
        """Return all resource providers."""
        listing: dict[str, Any] = self.placement('GET', '/resource_providers')
        return list(listing['resource_providers'])

    def provider(self, name: str) -> str:
        """Return the uuid of the provider with the name, once it exists."""

        def find() -> str | None:
            for provider in self.providers():
                if provider['name'] == name:
                    return str(provider['uuid'])
            return None

        return str(self.until(find, f'provider {name} exists'))

    def inventory(self, name: str) -> dict[str, Any]:
        """Return the inventories of a provider by resource class."""
        path = f'/resource_providers/{self.provider(name)}/inventories'
        return dict(self.placement('GET', path)['inventories'])

    def offers(self, name: str) -> bool:
        """Return True if a provider exists and has an inventory."""
        for provider in self.providers():
            if provider['name'] == name:
                path = f'/resource_providers/{provider["uuid"]}/inventories'
                answer = self.ask('placement', 'GET', path)
                # It may be deleted meanwhile.
                return answer.ok and bool(answer.json()['inventories'])
        return False

    def until_offered(self, name: str) -> None:
        """Wait until a provider exists and has an inventory."""
        self.until(lambda: self.offers(name), f'{name} is offered')

    def usages(self, name: str) -> dict[str, int]:
        """Return the used amounts of a provider by resource class."""
        path = f'/resource_providers/{self.provider(name)}/usages'
        return dict(self.placement('GET', path)['usages'])

    def create_profile(self, **resources: int) -> str:
        """Create a device profile with one group per class; return its name."""
        name = f'profile-{uuid.uuid4().hex[:8]}'
        groups = [{f'resources:{key}': str(n)} for key, n in resources.items()]
        body = [{'name': name, 'groups': groups}]
        self.accelerator('POST', '/device_profiles', body)
        return name

    # Any: bodies are JSON.
    def accelerator_at(
        self, version: str, method: str, path: str, body: Any = None
    ) -> Any:
        """Send a request of a microversion as an administrator; return the body."""
        headers = {
            'X-Auth-Token': self._token(self.admin),
            'OpenStack-API-Version': f'accelerator {version}',
        }
        url = f'{self.urls["accelerator"]}{path}'
        answer = requests.request(method, url, json=body, headers=headers, timeout=60)
        assert answer.ok, answer.text
        return answer.json()

    def create_selector_profile(self, selector: str, *alternatives: str) -> str:
        """Create a device profile for one card with a selector; return its name.

        :param alternatives: selectors that may be used instead, the best one first
        """
        name = f'profile-{uuid.uuid4().hex[:8]}'
        group, *rivals = [
            {'resources:PGPU': '1', 'accel:selector': text}
            for text in (selector, *alternatives)
        ]
        groups = [{**group, 'alternatives': rivals} if rivals else group]
        body = [{'name': name, 'groups': groups}]
        self.accelerator_at('2.6', 'POST', '/device_profiles', body)
        return name

    def create_flavor(self, profile: str | None) -> str:
        """Create a flavor that names the profile; return its id."""
        flavor = {'name': uuid.uuid4().hex, 'ram': 16, 'vcpus': 1, 'disk': 1}
        created = self.compute('POST', '/flavors', {'flavor': flavor})['flavor']
        if profile is not None:
            specs = {'extra_specs': {'accel:device_profile': profile}}
            self.compute('POST', f'/flavors/{created["id"]}/os-extra_specs', specs)
        return str(created['id'])

    def describe_server(self, flavor: str) -> dict[str, dict[str, str]]:
        """Return the body that creates a server."""
        server = {
            'name': 'guest',
            'flavorRef': flavor,
            'imageRef': self.image,
            'networks': 'none',
        }
        return {'server': server}

    def create_server(
        self, flavor: str, host: str | None = None, user: Person | None = None
    ) -> 'Server':
        """Ask Nova for a server; return without waiting."""
        body = self.describe_server(flavor)
        if host is not None:
            body['server']['host'] = host
        created = self.compute('POST', '/servers', body, user)['server']
        return Server(self, str(created['id']))

    def boot(
        self, profile: str | None, host: str | None = None, user: Person | None = None
    ) -> 'Server':
        """Boot a server that needs the profile; return it when it is ACTIVE."""
        server = self.create_server(self.create_flavor(profile), host, user)
        assert server.wait_built() == 'ACTIVE', server.fault()
        return server

    def delete_servers(self) -> None:
        """Delete all servers, and wait until no ARQ is left."""
        path = '/servers?all_tenants=1'
        for server in self.compute('GET', path)['servers']:
            self.compute('DELETE', f'/servers/{server["id"]}')
        self.until(
            lambda: not self.compute('GET', path)['servers'], 'all servers are deleted'
        )
        self.until(
            lambda: not self.accelerator('GET', '/accelerator_requests')['arqs'],
            'no ARQ is left',
        )


class Server:
    """A server of Nova."""

    def __init__(self, cloud: OpenStackClient, server_uuid: str) -> None:
        self.cloud = cloud
        self.uuid = server_uuid

    def show(self) -> dict[str, Any]:
        """Return the server as Nova shows it."""
        return dict(self.cloud.compute('GET', f'/servers/{self.uuid}')['server'])

    def fault(self) -> str:
        """Return the fault message, or an empty text."""
        return str(self.show().get('fault', {}).get('message', ''))

    def host(self) -> str:
        """Return the compute host of the server."""
        return str(self.show()['OS-EXT-SRV-ATTR:host'])

    def wait_built(self) -> str:
        """Wait until the build ends; return ACTIVE or ERROR."""
        return self.wait_for('ACTIVE', 'ERROR')

    def wait_for(self, *statuses: str) -> str:
        """Wait for one of the statuses without a task; return it."""

        def read_status() -> str | None:
            server = self.show()
            idle = server['OS-EXT-STS:task_state'] is None
            final = server['status'] in statuses and idle
            return str(server['status']) if final else None

        return str(self.cloud.until(read_status, f'server is {" or ".join(statuses)}'))

    def wait_idle(self, status: str) -> None:
        """Wait until the last action has ended and the server has the status."""

        def is_idle() -> bool:
            if self._read_result(self._list_actions()[0]) is None:
                return False
            server = self.show()
            return (server['status'], server['OS-EXT-STS:task_state']) == (status, None)

        self.cloud.until(is_idle, f'server is {status}')

    def act(self, action: str, body: Any = None, user: Person | None = None) -> None:
        """Post a server action."""
        path = f'/servers/{self.uuid}/action'
        self.cloud.compute('POST', path, {action: body}, user)

    def results(self, action: str) -> list[str | None]:
        """Return the result of each action of this name; None: it has not ended."""
        rows = reversed(self._list_actions())
        return [self._read_result(row) for row in rows if row['action'] == action]

    def _list_actions(self) -> list[dict[str, Any]]:
        """Return the actions, the last one first."""
        path = f'/servers/{self.uuid}/os-instance-actions'
        return list(self.cloud.compute('GET', path)['instanceActions'])

    def _read_result(self, action: dict[str, Any]) -> str | None:
        path = f'/servers/{self.uuid}/os-instance-actions/{action["request_id"]}'
        events = self.cloud.compute('GET', path)['instanceAction']['events']
        return events[0]['result'] if events else None

    def arqs(self) -> list[dict[str, Any]]:
        """Return the ARQs of the server as cyborg_lite shows them."""
        path = f'/accelerator_requests?instance={self.uuid}'
        return list(self.cloud.accelerator('GET', path)['arqs'])

    def allocations(self) -> dict[str, Any]:
        """Return the allocations of the server by provider."""
        path = f'/allocations/{self.uuid}'
        return dict(self.cloud.placement('GET', path)['allocations'])

    def delete(self) -> None:
        """Delete the server and wait until Nova has forgotten it."""
        self.cloud.compute('DELETE', f'/servers/{self.uuid}')
        self.wait_gone()

    def wait_gone(self) -> None:
        """Wait until Nova has deleted the server."""
        path = f'/servers/{self.uuid}'
        self.cloud.until(
            lambda: self.cloud.status('compute', 'GET', path) == 404,
            'the server is deleted',
        )
