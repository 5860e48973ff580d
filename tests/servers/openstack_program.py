# SPDX-License-Identifier: Apache-2.0
"""The ``openstack`` program, started once for many commands.

Its start takes longer than most commands. So one process per person and cloud reads
command lines and runs them over one connection, as the interactive mode does. A
command with global options of its own gets a new process and connection. ``once``
starts the program as a person does.

There are two sets of accelerator commands: python-openstackclient has its own since
version 10, and then ignores those of python-cyborgclient, which had them before.
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
from typing import Any, Final, Self

from tests.servers.keystone import PASSWORD, Person, RealKeystone

OWN: Final = 'own'
PLUGIN: Final = 'plugin'
"""Owner of the commands: python-openstackclient or python-cyborgclient."""

_MODULE: Final = 'tests.servers.openstack_program'
_ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    status: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        """Return the JSON that ``-f json`` printed."""
        assert self.status == 0, self.error
        return json.loads(self.out)


def environment(keystone: RealKeystone, person: Person) -> dict[str, str]:
    """Return the environment variables of a person."""
    return {
        'OS_AUTH_URL': keystone.url,
        'OS_USERNAME': person.user,
        'OS_PASSWORD': PASSWORD,
        'OS_PROJECT_ID': person.project_id,
        'OS_USER_DOMAIN_ID': 'default',
        'OS_IDENTITY_API_VERSION': '3',
    }


def once(person_environment: Mapping[str, str], *arguments: str) -> Done:
    """Run the program; ``who`` is the result of ``environment``."""
    program = shutil.which('openstack', path=str(Path(sys.executable).parent))
    # A virtual environment on top of another one has no scripts of its packages.
    command = [program] if program else [sys.executable, '-m', 'openstackclient.shell']
    completed = subprocess.run(
        [*command, *arguments],
        env={**os.environ, **person_environment, 'PYTHONWARNINGS': 'ignore'},
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(completed.returncode, completed.stdout, completed.stderr)


class OpenStackProgram:
    """Process that runs commands of one of the two sets until its block ends."""

    def __init__(self, person_environment: Mapping[str, str], commands: str) -> None:
        """Store the arguments.

        :param person_environment: result of ``environment``
        """
        self.commands = commands
        self._environment = {
            **os.environ,
            **person_environment,
            'PYTHONWARNINGS': 'ignore',
        }
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

    def __exit__(self, *trouble: object) -> None:
        if self._process is not None:
            self._process.communicate()

    def run(self, *arguments: str, service_token: str | None = None) -> Done:
        """Run a command with the arguments after ``openstack``.

        :param service_token: sent beside the token of the person, as Nova does
        """
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        command_line = json.dumps([service_token, *arguments])
        print(command_line, file=self._process.stdin, flush=True)
        return Done(**json.loads(self._process.stdout.readline()))


def serve(commands: str) -> None:
    """Run each command line on standard input."""
    # Only this process may load the program, because it configures logging.
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


def _answer(completed: Done) -> None:
    print(json.dumps(asdict(completed)), flush=True)


def _forget_connections() -> None:
    """Close connections, because they have the options of the first command."""
    from osc_lib.clientmanager import ClientCache, ClientManager

    for cache in vars(ClientManager).values():
        if isinstance(cache, ClientCache):
            cache._handle = None


def _choose(commands: str) -> None:
    """Hide the packages of the other set, which would take over parts of this one."""
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
    """Send the service token with all further requests."""
    from keystoneauth1 import session

    class Session(session.Session):
        # Any: as in the library.
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
        except SystemExit as end:  # raised by the argument parser
            status = end.code
    return Done(int(status or 0), out.getvalue(), error.getvalue())


if __name__ == '__main__':
    serve(sys.argv[1])
