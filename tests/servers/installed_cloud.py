# SPDX-License-Identifier: Apache-2.0
"""Cloud with the configuration that the install guide prints.

The blocks are read from the page. Only names, addresses and passwords are replaced.
"""

import re
import uuid
from pathlib import Path
from typing import Final

from devstack.launcher.rest import Service
from tests.servers.keystone import PASSWORD, RealKeystone
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.stack import ROOT, Options

_PAGE: Final = ROOT / 'doc' / 'source' / 'install.rst'
_EVERY_HOST: Final = 'Configure every host'
_CONDUCTOR: Final = 'Configure the conductor hosts'
# Sections by a part of the name of the configuration.
_ROLES: Final = {
    'agent': 'Configure the hosts with accelerators',
    'api': 'Configure the API hosts',
}

_PLACEMENT: Final = """\
[api]
auth_strategy = keystone
[placement_database]
connection = sqlite:///{database}
[keystone_authtoken]
auth_type = password
auth_url = {url}
www_authenticate_uri = {url}
username = {user}
password = {password}
project_id = {project}
user_domain_id = default
"""


def read_blocks(title: str) -> str:
    """Return the configuration in a section of the page, without its indent."""
    page = _PAGE.read_text()
    body = re.split(r'\n\d\. [^\n]+\n=+\n', page.split(f'. {title}\n')[1])[0]
    blocks = re.findall(r'::\n\n((?: +[^\n]+\n|\n)+)', body)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    options = [line for line in lines if re.match(r'\[\w+\]$|\w+ = ', line)]
    assert options, f'{_PAGE.name} has no configuration in section {title}'
    return '\n'.join(options) + '\n'


class InstalledCloud(KeystoneCloud):
    """Daemons with the configuration of the page; Placement accepts tokens only."""

    def __init__(
        self,
        directory: Path,
        keystone: RealKeystone,
        *,
        transport_url: str,
        connection: str,
    ) -> None:
        super().__init__(directory, keystone)
        name = uuid.uuid4().hex[:8]
        self._project = f'service-{name}'
        project = keystone.project(self._project)
        self._user = keystone.person(f'cyborg-{name}', project, 'admin', 'service')
        self._urls = {'transport': transport_url, 'connection': connection}
        self._catalog['placement'] = self.placement.endpoint
        headers = dict(self.placement.headers)
        headers['X-Auth-Token'] = keystone.token_of(self._user)
        self.placement = Service(self.placement.endpoint, headers)
        self.omitted_sections: tuple[str, ...] = ()  # of the page
        # What the page leaves to its defaults, and what two clouds on a host share.
        self._options = {
            'DEFAULT': {'host': self.host},
            'api': {'host': '127.0.0.1', 'port': self.port},
            'agent': {
                'enabled_drivers': 'fake_driver',
                'discovery_interval': 1,
                'fingerprint_interval': 1,
                'heartbeat_interval': 1,
                'state_path': directory / 'agent',
                'image_directory': directory / 'agent' / 'images',
            },
        }

    def _write_placement_config(self, path: Path) -> None:
        path.write_text(
            _PLACEMENT.format(
                database=self.directory / 'placement.sqlite',
                url=self.keystone.url,
                user=self._user.user,
                password=PASSWORD,
                project=self._user.project_id,
            )
        )

    def write_config(self, name: str, options: Options) -> Path:
        """Write the blocks of the page, then the options of this cloud."""
        sections = (section for role, section in _ROLES.items() if role in name)
        titles = _EVERY_HOST, next(sections, _CONDUCTOR)
        path = super().write_config(name, options)
        blocks = ''.join(self._localize(read_blocks(title)) for title in titles)
        for section in self.omitted_sections:
            blocks = re.sub(rf'\[{section}\]\n([^\[]+\n)+', '', blocks)
        path.write_text(blocks + path.read_text())
        return path

    def _localize(self, text: str) -> str:
        """Replace the names, addresses and passwords of the page."""
        for pattern, value in (
            (r'transport_url = .*', f'transport_url = {self._urls["transport"]}'),
            (r'connection = [^?\n]*', f'connection = {self._urls["connection"]}'),
            (r'http://controller:5000/v3', self.keystone.url),
            (r'username = .*', f'username = {self._user.user}'),
            (r'password = .*', f'password = {PASSWORD}'),
            (r'project_name = .*', f'project_name = {self._project}'),
            (r'/var/lib/cyborg-lite', str(self.directory)),
        ):
            text = re.sub(pattern, value, text)
        return text
