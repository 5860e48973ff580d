# SPDX-License-Identifier: Apache-2.0
"""Real Horizon with the panels of this service, set up as the documentation says.

It has the files of the installed ``openstack_dashboard``, except that its folder
``local`` belongs to the test. ``python -m tests.servers.horizon`` serves on a free
port, and prints the address when it listens.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import util
from pathlib import Path
from typing import Any, Final, Self

import requests

from tests.servers.keystone import PASSWORD

ROOT: Final = Path(__file__).parents[2]

_MODULE: Final = 'tests.servers.horizon'
_PACKAGE: Final = 'openstack_dashboard'
_PLUGIN: Final = ROOT / 'cyborg_lite_dashboard'
_LOGIN: Final = '/auth/login/'
_THREADS: Final = 4
_SETTINGS: Final = """
LOCAL_PATH = {local!r}
SECRET_KEY = 'only for the tests' * 3
DEBUG = False
ALLOWED_HOSTS = ['127.0.0.1']
COMPRESS_OFFLINE = True
STATIC_ROOT = {static!r}
SESSION_ENGINE = 'django.contrib.sessions.backends.signed_cookies'
CACHES = {{'default': {{'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}}}}
OPENSTACK_KEYSTONE_URL = {keystone!r}
TIME_ZONE = 'UTC'
# The first page of Horizon shows quotas of services that the tests lack.
LOGIN_REDIRECT_URL = '/project/device_profiles/'
"""


class HorizonServer:
    """Process with Horizon."""

    def __init__(self, directory: Path, keystone_url: str) -> None:
        """Store the arguments."""
        self.url = ''
        self._directory = directory
        self._keystone_url = keystone_url
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._install()
        self._manage('compress', '--force')
        with (self._directory / 'horizon.log').open('w') as log:
            self._process = subprocess.Popen(
                [sys.executable, '-m', _MODULE],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{'):
                self.url = json.loads(line)['url']
                break
        assert self.url, f'Horizon did not start: {self.read_log()}'
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def read_log(self) -> str:
        """Return the log."""
        return (self._directory / 'horizon.log').read_text()

    def log_in(self, user: str) -> 'DashboardUser':
        """Return a user with a session."""
        return DashboardUser(self.url, user)

    @property
    def _environment(self) -> Mapping[str, str]:
        paths = os.pathsep.join([str(self._directory), str(ROOT)])
        return {
            **os.environ,
            'PYTHONPATH': paths,
            'PYTHONWARNINGS': 'ignore',
            'DJANGO_SETTINGS_MODULE': f'{_PACKAGE}.settings',
        }

    def _install(self) -> None:
        """Copy the files of the panels into ``local``, as an operator does."""
        spec = util.find_spec(_PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        source, target = Path(spec.origin).parent, self._directory / _PACKAGE
        target.mkdir()
        for path in source.iterdir():
            if path.name != 'local':
                (target / path.name).symlink_to(path)
        local = target / 'local'
        shutil.copytree(source / 'local', local)
        for folder in ('enabled', 'local_settings.d'):
            shutil.copytree(_PLUGIN / folder, local / folder, dirs_exist_ok=True)
        static = str(self._directory / 'static')
        (local / 'local_settings.py').write_text(
            _SETTINGS.format(
                local=str(local), static=static, keystone=self._keystone_url
            )
        )

    def _manage(self, *command: str) -> None:
        process = subprocess.run(
            [sys.executable, '-m', 'django', *command],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr


class DashboardUser:
    """User of Horizon with a session, who sends forms as a browser does."""

    def __init__(self, url: str, user: str) -> None:
        """Log in."""
        self.url = url
        self._http = requests.Session()
        self._http.get(url + _LOGIN).raise_for_status()
        form = {'username': user, 'password': PASSWORD, 'region': 'default'}
        page = self.post(_LOGIN, form)
        assert self._http.cookies.get('sessionid'), page.text

    @property
    def cookies(self) -> dict[str, str]:
        """Cookies of the session."""
        return dict(self._http.cookies)

    def get(self, path: str, **query: str) -> requests.Response:
        """Return a page."""
        return self._http.get(self.url + path, params=query)

    def post(self, path: str, form: Mapping[str, object]) -> requests.Response:
        """Send a form and return the page that follows."""
        token = self._http.cookies['csrftoken']
        return self._http.post(
            self.url + path,
            data={**form, 'csrfmiddlewaretoken': token},
            headers={'Referer': self.url},
        )


def serve() -> None:
    """Serve pages and static files until the process is stopped."""
    # Only this process may load the packages, because they read the settings.
    import waitress
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.contrib.staticfiles.views import serve as serve_static
    from django.core.wsgi import get_wsgi_application

    # Any: the classes of Django have no types.
    class StaticFiles(StaticFilesHandler):  # type: ignore[misc]  # untyped base
        def serve(self, request: Any) -> Any:
            # Without DEBUG Django leaves static files to the web server.
            return serve_static(request, self.file_path(request.path), insecure=True)

    application = StaticFiles(get_wsgi_application())
    server = waitress.create_server(application, listen='127.0.0.1:0', threads=_THREADS)
    url = f'http://127.0.0.1:{server.effective_port}'
    print(json.dumps({'url': url}), flush=True)
    server.run()


if __name__ == '__main__':
    serve()
