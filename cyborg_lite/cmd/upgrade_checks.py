# SPDX-License-Identifier: Apache-2.0
"""What ``cyborg-lite-status upgrade check`` looks at, before daemons are restarted."""

from collections.abc import Callable

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from cyborg_lite import version
from cyborg_lite.cmd import address, database
from cyborg_lite.db import jobs, migration, services
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.jobs import JobCount, JobState
from cyborg_lite.model.services import Service
from cyborg_lite.rpc import transport


class Checks(UpgradeCommands):
    """Each one tells what to do when it is not content."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def _schema(self) -> Result:
        return _unless_away(lambda: _of_schema(self._conf.database.connection))

    def _bus(self) -> Result:
        where = address.without_password(transport.address(self._conf))
        if where not in ('rabbit:/', 'rabbit:///'):
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            'transport_url is not set; RabbitMQ is looked for on this host.',
        )

    def _daemons_and_jobs(self) -> tuple[tuple[Service, ...], tuple[JobCount, ...]]:
        opened = database.configured(self._conf)
        try:
            return opened.read(services.listed), opened.read(jobs.count)
        finally:
            opened.close()

    def _versions(self) -> Result:
        return _unless_away(lambda: _of_versions(self._daemons_and_jobs()[0]))

    def _jobs(self) -> Result:
        return _unless_away(lambda: _of_jobs(self._daemons_and_jobs()[1]))

    _upgrade_checks = (
        ('The schema of the database', _schema),
        ('The message bus', _bus),
        ('The versions of the daemons', _versions),
        ('Failed jobs', _jobs),
    )


def _unless_away(check: Callable[[], Result]) -> Result:
    try:
        return check()
    except CyborgError as error:
        return Result(Code.FAILURE, f'{error.text} {error.advice}')


def _of_schema(connection: str) -> Result:
    current, head = migration.current(connection), migration.head()
    if current == head:
        return Result(Code.SUCCESS)
    return Result(
        Code.FAILURE,
        f'The schema is at revision {current}, this version needs {head}: '
        'run cyborg-lite-dbsync upgrade.',
    )


def _of_versions(daemons: tuple[Service, ...]) -> Result:
    others = [
        f'{daemon.binary} on {daemon.host} ({daemon.version})'
        for daemon in daemons
        if daemon.version != version.version()
    ]
    if not others:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING, f'Of another version, restart them: {", ".join(others)}.'
    )


def _of_jobs(counts: tuple[JobCount, ...]) -> Result:
    failed = sum(count.count for count in counts if count.state is JobState.FAILED)
    if not failed:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING, f'{failed} jobs have failed for good; see cyborg-lite-status.'
    )
