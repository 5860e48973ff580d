# SPDX-License-Identifier: Apache-2.0
"""Real Glance with SQLite and files, without Keystone, in a process of its own.

Glance keeps its configuration in globals of its package, so it needs a process. It
starts with the first test that uses it and stops with the test run.
"""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from oslo_config import cfg

from cyborg_lite.clients.glance import Glance
from cyborg_lite.conf import glance as section

_PATIENCE: Final = 120.0  # seconds until it must answer

_CONFIGURATION: Final = """
[DEFAULT]
enabled_backends = files:file
worker_self_reference_url = http://127.0.0.1
log_file = {directory}/glance.log
node_staging_uri = file://{directory}/staging
[database]
connection = sqlite:///{directory}/glance.sqlite
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = {directory}/images
[os_glance_staging_store]
filesystem_store_datadir = {directory}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {directory}/tasks
[paste_deploy]
config_file = {paste}
[oslo_policy]
policy_file = {directory}/policy.yaml
[oslo_concurrency]
lock_path = {directory}
"""

# Without authentication no caller has a role or a project that a rule could check.
_OPEN: Final = (
    'add_image',
    'add_member',
    'delete_image',
    'download_image',
    'get_image',
    'get_images',
    'publicize_image',
    'upload_image',
)

_SERVER: Final = """
import threading

import waitress
from glance.common import config, wsgi_app
from glance.db.sqlalchemy import api, models
from oslo_config import cfg

def schema(*_):
    models.BASE.metadata.create_all(api.get_engine())

wsgi_app.run_staging_cleanup = lambda: None
wsgi_app.sqlite_migration.migrate_if_required = schema
application = wsgi_app.init_app()
server = waitress.create_server(application, listen='127.0.0.1:0')
print(server.effective_port, flush=True)
server.run()
"""


@dataclass(frozen=True)
class RealGlance:
    """Client of the process, with the rights of an uploader."""

    endpoint: str
    directory: Path

    def damage(self, uuid: str) -> None:
        """Change one byte of the content on disk."""
        file = self.directory / 'images' / uuid
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)

    def upload(
        self,
        content: bytes,
        tags: tuple[str, ...],
        properties: Mapping[str, str],
        name: str = 'from a test',
    ) -> str:
        """Upload an active image and return its id."""
        body = {
            'name': name,
            'disk_format': 'raw',
            'container_format': 'bare',
            'tags': list(tags),
            'visibility': 'public',
            **properties,
        }
        created = self._send('POST', '/v2/images', json.dumps(body).encode(), 'json')
        uuid = str(json.loads(created)['id'])
        self._send('PUT', f'/v2/images/{uuid}/file', content, 'octet-stream')
        return uuid

    def delete(self, uuid: str) -> None:
        self._send('DELETE', f'/v2/images/{uuid}', b'', 'json')

    def _send(self, method: str, path: str, body: bytes, kind: str) -> bytes:
        request = urllib.request.Request(
            self.endpoint + path,
            data=body,
            method=method,
            headers={'Content-Type': f'application/{kind}'},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            content: bytes = answer.read()
            return content


@pytest.fixture(scope='session')
def real_glance(request: pytest.FixtureRequest) -> RealGlance:
    """Return the Glance of this test run. Test modules import this fixture."""
    return start_glance(request.config)


@functools.cache
def start_glance(config: pytest.Config) -> RealGlance:
    """Start the Glance of this test run and wait until it serves."""
    pytest.importorskip('glance', reason='the glance package is not installed')
    directory = Path(tempfile.mkdtemp(prefix='glance-'))
    for name in ('images', 'staging', 'tasks'):
        (directory / name).mkdir()
    # The wheel contains the pipelines; the first one has no authentication.
    paste = Path(sys.prefix) / 'etc/glance/glance-api-paste.ini'
    text = _CONFIGURATION.format(directory=directory, paste=paste)
    (directory / 'glance-api.conf').write_text(text)
    (directory / 'policy.yaml').write_text(json.dumps(dict.fromkeys(_OPEN, '@')))
    with (directory / 'errors').open('wb') as errors:
        server = subprocess.Popen(
            [sys.executable, '-c', _SERVER],
            env={**os.environ, 'OS_GLANCE_CONFIG_DIR': str(directory)},
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    config.add_cleanup(lambda: _stop(server))
    assert server.stdout is not None
    # The process prints its port when it serves, or an empty line if it has exited.
    port = server.stdout.readline().decode().strip()
    if not port:
        pytest.fail((directory / 'errors').read_text()[-4000:])
    return RealGlance(f'http://127.0.0.1:{port}', directory)


# Any: the output of the process is read as bytes.
def _stop(server: 'subprocess.Popen[Any]') -> None:
    os.killpg(server.pid, signal.SIGKILL)
    server.wait(_PATIENCE)


def build_client(endpoint: str) -> Glance:
    """Return a Glance client of the product for a URL."""
    conf = cfg.ConfigOpts()
    conf.register_opts(section.OPTIONS, group=section.GROUP)
    conf([])
    conf.set_override('endpoint_override', endpoint, group=section.GROUP)
    client = Glance.from_config_if_set(conf)
    assert client is not None
    return client
