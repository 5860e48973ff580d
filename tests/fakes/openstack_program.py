# SPDX-License-Identifier: Apache-2.0
"""The ``openstack`` program, started once for many commands.

Starting it takes longer than most commands do. So a process of its own, with a person
and a cloud in its environment, runs each command line that it reads, over one
connection, as the interactive mode does. Where a command has global options of its own
it gets a process and a connection to itself. ``once`` starts the program, as a person
does.

There are two sets of accelerator commands: python-openstackclient brings its own since
version 10, and then ignores those of python-cyborgclient, which one had before.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.fakes.real_keystone import PASSWORD, Person, RealKeystone

OWN: Final = 'own'
PLUGIN: Final = 'plugin'
"""Whose commands: those of python-openstackclient, or of python-cyborgclient."""

_MODULE: Final = 'tests.fakes.openstack_program'
_ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        """What ``-f json`` printed."""
        assert self.status == 0, self.error
        return json.loads(self.out)


def environment(keystone: RealKeystone, person: Person) -> dict[str, str]:
    """What a person sources before the first command."""
    return {
        'OS_AUTH_URL': keystone.url,
        'OS_USERNAME': person.user,
        'OS_PASSWORD': PASSWORD,
        'OS_PROJECT_ID': person.project_id,
        'OS_USER_DOMAIN_ID': 'default',
        'OS_IDENTITY_API_VERSION': '3',
    }


def once(who: Mapping[str, str], *arguments: str) -> Done:
    """By the program itself; ``who`` is an ``environment``."""
    program = shutil.which('openstack', path=str(Path(sys.executable).parent))
    # An environment that only sees the packages of another one has no scripts of them.
    command = [program] if program else [sys.executable, '-m', 'openstackclient.shell']
    done = subprocess.run(
        [*command, *arguments],
        env={**os.environ, **who, 'PYTHONWARNINGS': 'ignore'},
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class OpenStackProgram:
    """Runs commands of one of the two sets until its block ends."""

    def __init__(self, who: Mapping[str, str], commands: str) -> None:
        """:param who: an ``environment``"""
        self.commands = commands
        self._environment = {**os.environ, **who, 'PYTHONWARNINGS': 'ignore'}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, '-m', _MODULE, self.commands],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            env=self._environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.communicate()

    def run(self, *arguments: str, service_token: str | None = None) -> Done:
        """``arguments`` as a person writes them behind ``openstack``.

        :param service_token: sent beside the token of the person, as Nova does
        """
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = json.dumps([service_token, *arguments])
        print(asked, file=self._process.stdin, flush=True)
        return Done(**json.loads(self._process.stdout.readline()))


def serve(commands: str) -> None:
    """Run each command line that comes until none does."""
    # Only a process of its own may load the program: it takes over the log.
    from openstackclient import shell

    _choose(commands)
    for line in sys.stdin:
        service_token, *arguments = json.loads(line)
        if service_token is None and not arguments[0].startswith('--'):
            _answer(_run(shell.main, arguments))
            continue
        pid = os.fork()
        if pid == 0:
            _forget_connections()
            _send(service_token)
            _answer(_run(shell.main, arguments))
            os._exit(0)
        os.waitpid(pid, 0)


def _answer(done: Done) -> None:
    print(json.dumps(asdict(done)), flush=True)


def _forget_connections() -> None:
    """They are as the options of the first command had them."""
    from osc_lib.clientmanager import ClientCache, ClientManager

    for cache in vars(ClientManager).values():
        if isinstance(cache, ClientCache):
            cache._handle = None


def _choose(commands: str) -> None:
    """As if nothing else were installed: each would take parts of the other."""
    from cyborgclient.osc import plugin
    from openstackclient import shell
    from openstackclient.accelerator import client
    from openstackclient.common import clientmanager
    from osc_lib.clientmanager import ClientCache, ClientManager

    chosen, ignored = client, 'cyborgclient.osc.v2'
    if commands == PLUGIN:
        chosen, ignored = plugin, 'openstackclient.accelerator.v2'
    vars(shell)['IGNORED_MODULES'] = (ignored,)
    setattr(ClientManager, chosen.API_NAME, ClientCache(chosen.make_client))
    clientmanager.PLUGIN_MODULES[:] = [
        chosen if module.API_NAME == chosen.API_NAME else module
        for module in clientmanager.PLUGIN_MODULES
    ]


def _send(service_token: str | None) -> None:
    """With every request from now on."""
    from keystoneauth1 import session

    class Session(session.Session):
        # Any: as the library has it.
        def request(self, *arguments: Any, **options: Any) -> Any:
            if service_token is not None:
                self.additional_headers['X-Service-Token'] = service_token
            return super().request(*arguments, **options)

    vars(session)['Session'] = Session


def _run(main: Any, arguments: Sequence[str]) -> Done:
    out, error = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(error):
        try:
            status = main(list(arguments))
        except SystemExit as end:  # of the parser of arguments
            status = end.code
    return Done(int(status or 0), out.getvalue(), error.getvalue())


if __name__ == '__main__':
    serve(sys.argv[1])
