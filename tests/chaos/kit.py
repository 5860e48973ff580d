# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: a cloud to be hurt, and its reckoning."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from devstack.launcher.processes import Child
from devstack.launcher.rest import Answer
from tests.chaos import dying_conductor
from tests.chaos.files_driver import FilesDriver
from tests.fakes import out_of_tree
from tests.fakes.stack import Cloud


class HurtCloud(Cloud):
    """A cloud whose host has a fake FPGA, and a card that it must prepare."""

    def __init__(
        self, directory: Path, transport_url: str, connection: str, **options: object
    ) -> None:
        self.files = directory / 'files'
        self.files.mkdir()
        self.connection = connection
        pause = options.pop('pause', 0)
        super().__init__(
            directory,
            transport_url=transport_url,
            connection=connection,
            options={
                'DEFAULT': options,
                'agent': {'enabled_drivers': 'fake_driver,files_driver'},
                'files_driver': {'folder': self.files, 'pause': pause},
                'conductor': {'job_lease': 3, 'agent_timeout': 5, 'bind_deadline': 60},
            },
        )
        self.python_path.append(out_of_tree.install(FilesDriver, directory / 'site'))

    def start_dying(self, name: str, step: str) -> Child:
        """A conductor that is killed when it comes to that step."""
        module = dying_conductor.__name__
        environment = {dying_conductor.VARIABLE: step}
        # A log of its own, so that nobody else's readiness is taken for its.
        name = f'{name}-{step.replace(":", "-")}'
        child = self.begin(name, 'conductor', module=module, environment=environment)
        child.until(lambda: 'Ready.' in self.log(child))
        return child

    # --- the reckoning ---

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Asked of the database itself; columns of any type."""
        engine = create_engine(self.connection)
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(query))]
        finally:
            engine.dispose()

    def states(self) -> Counter[str]:
        return Counter(state for (state,) in self.rows('SELECT state FROM arqs'))

    def owners(self) -> list[str]:
        """The requests that hold a handle."""
        query = 'SELECT arq_uuid FROM attach_handles WHERE arq_uuid IS NOT NULL'
        return sorted(owner for (owner,) in self.rows(query))

    def unfinished(self) -> Counter[tuple[str, str]]:
        """Jobs by kind and state; what concerns Placement alone is left out."""
        query = "SELECT kind, state FROM jobs WHERE kind NOT IN ('placement-sync')"
        return Counter((kind, state) for kind, state in self.rows(query))

    def prepared(self) -> list[str]:
        """The requests for which the host has something prepared."""
        return sorted(file.read_text() for file in self.files.iterdir())

    def settle(self) -> None:
        """Wait until no job is left."""
        self.until(lambda: not self.unfinished(), 'every job is finished')


def accepted(answer: Answer, status: int) -> None:
    """Who dies of what it has accepted may do so before it has said that it has."""
    assert answer.status in (status, 503), answer.body


@contextmanager
def running(cloud: HurtCloud) -> Iterator[HurtCloud]:
    """With its database, an agent and an API; the conductors are the test's."""
    with cloud:
        cloud.migrate()
        cloud.start('agent')
        cloud.start('api')
        yield cloud
