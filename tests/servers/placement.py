# SPDX-License-Identifier: Apache-2.0
"""Real Placement on a socket of this process, with SQLite and without Keystone.

Placement keeps its database in a global of its package, so a process has only one. It
starts with the first test that uses it. Tests are isolated by unique names of hosts
and providers.
"""

import functools
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import waitress
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy
from placement.db.sqlalchemy import migration

from cyborg_lite.clients.placement import MICROVERSION
from cyborg_lite.clients.session import NO_CREDENTIALS, Remote
from devstack.launcher.placement_server import grant_roles

# One thread means one transaction at a time, which avoids locks of SQLite.
_THREADS: Final = 1

_CONFIGURATION: Final = """
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{directory}/placement.sqlite
sqlite_synchronous = false
"""


class CountedRemote(Remote):
    """Remote that records its requests as ``METHOD path``."""

    def __init__(self, name: str, adapter: Adapter) -> None:
        super().__init__(name, adapter)
        self.calls: list[str] = []

    def send(
        self, method: str, path: str, *args: Any, **options: Any
    ) -> requests.Response:
        """Record and send a request; further arguments are passed on."""
        self.calls.append(f'{method} {path}')
        return super().send(method, path, *args, **options)


@pytest.fixture
def remote(request: pytest.FixtureRequest) -> CountedRemote:
    """Return a remote without recorded requests. Test modules import this fixture."""
    session = Session(auth=Token(endpoint(request.config), NO_CREDENTIALS))
    adapter = Adapter(
        session, service_type='placement', default_microversion=MICROVERSION
    )
    return CountedRemote('Placement', adapter)


@functools.cache
def endpoint(config: pytest.Config) -> str:
    """Start the Placement of this process and return its URL."""
    directory = Path(tempfile.mkdtemp(prefix='placement-'))
    server = waitress.create_server(
        _application(directory), listen='127.0.0.1:0', threads=_THREADS
    )
    threading.Thread(target=server.run, name='placement', daemon=True).start()
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    return f'http://127.0.0.1:{server.effective_port}'


def _application(directory: Path) -> Any:
    """Return the WSGI application. Any: the package has no type information."""
    file = directory / 'placement.conf'
    file.write_text(_CONFIGURATION.format(directory=directory))
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf([], default_config_files=[str(file)], default_config_dirs=[])
    db_api.configure(conf)
    migration.create_schema(db_api.get_placement_engine())
    return grant_roles(deploy.loadapp(conf))
