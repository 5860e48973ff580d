# SPDX-License-Identifier: Apache-2.0
"""Cloud with a fake FPGA and a prepared card, and functions that check its state."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from devstack.launcher.processes import Child
from devstack.launcher.rest import Answer
from tests.builders import driver_packages
from tests.chaos import crashing_conductor
from tests.chaos.files_driver import FilesDriver
from tests.servers.stack import Cloud


class FaultyCloud(Cloud):
    """Cloud whose host has a fake FPGA and a card with prepared handles."""

    def __init__(
        self,
        directory: Path,
        transport_url: str,
        connection: str,
        *,
        pause: float = 0.0,
        **options: object,
    ) -> None:
        """Create the cloud.

        :param pause: seconds that the host takes to prepare or release a handle
        """
        self.files = directory / 'files'
        self.files.mkdir()
        self.connection = connection
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
        self.python_path.append(
            driver_packages.install(FilesDriver, directory / 'site')
        )

    def start_dying(self, name: str, step: str) -> Child:
        """Start a conductor that is killed at a step."""
        module = crashing_conductor.__name__
        environment = {crashing_conductor.VARIABLE: step}
        # With a shared log another conductor's line would count as its readiness.
        name = f'{name}-{step.replace(":", "-")}'
        child = self.begin(name, 'conductor', module=module, environment=environment)
        child.until(lambda: 'Ready.' in self.log(child))
        return child

    def start_survivor(self) -> Child:
        """Return the conductor that outlived the last step, or start one."""
        for child in self.children:
            if child.log.name == 'conductor.log' and child.status is None:
                return child
        return self.start('conductor')

    # --- checks ---

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Query the database directly. Any: the columns have various types."""
        engine = create_engine(self.connection)
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(query))]
        finally:
            engine.dispose()

    def states(self) -> Counter[str]:
        return Counter(state for (state,) in self.rows('SELECT state FROM arqs'))

    def owners(self) -> list[str]:
        """Return the ARQs that own a handle."""
        query = 'SELECT arq_uuid FROM attach_handles WHERE arq_uuid IS NOT NULL'
        return sorted(owner for (owner,) in self.rows(query))

    def count_unfinished_jobs(self) -> Counter[tuple[str, str]]:
        """Count unfinished jobs by type and state, except jobs of Placement."""
        query = "SELECT kind, state FROM jobs WHERE kind NOT IN ('reconcile')"
        return Counter((kind, state) for kind, state in self.rows(query))

    def list_prepared_arqs(self) -> list[str]:
        """Return the ARQs that have something prepared on the host."""
        return sorted(file.read_text() for file in self.files.iterdir())

    def settle(self) -> None:
        """Wait until no job is left."""
        self.until(lambda: not self.count_unfinished_jobs(), 'every job is finished')


def check_accepted(answer: Answer, status: int) -> None:
    """Check the status of an answer; the process may be killed before it answers."""
    assert answer.status in (status, 503), answer.body


@contextmanager
def run_cloud(cloud: FaultyCloud) -> Iterator[FaultyCloud]:
    """Start the database, an agent and an API. The test starts the conductors."""
    with cloud:
        cloud.migrate()
        cloud.start('agent')
        cloud.start('api')
        yield cloud
