# SPDX-License-Identifier: Apache-2.0
"""The checks of ``cyborg-lite-status upgrade check``.

They run before the daemons are restarted with a new version.
"""

from collections.abc import Callable
from typing import Final

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from cyborg_lite.cmd.dbsync import migrate_profiles
from cyborg_lite.cmd.dbsync.online_migration import list_daemons_of_other_versions
from cyborg_lite.cmd.support import address, database, message_keys
from cyborg_lite.db.arqs import attach_handles
from cyborg_lite.db.core import migration, online_migrations
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.hosts.services import Service
from cyborg_lite.model.jobs import JobCount, JobState, JobType
from cyborg_lite.model.text import format_count
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.security.keys import Role

_JOB_TYPES: Final = frozenset(str(job_type) for job_type in JobType)


class Checks(UpgradeCommands):
    """The upgrade checks; the details of a failed check name the remedy."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def _schema(self) -> Result:
        return _failure_on_error(lambda: _check_schema(self._conf.database.connection))

    def _bus(self) -> Result:
        url = address.without_password(transport.address(self._conf))
        if url not in ('rabbit:/', 'rabbit:///'):
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            'transport_url is not set; the default is RabbitMQ on this host.',
        )

    def _signatures(self) -> Result:
        return _failure_on_error(lambda: _check_signatures(self._conf))

    def _daemons_and_jobs(self) -> tuple[tuple[Service, ...], tuple[JobCount, ...]]:
        with database.open_database(self._conf) as db:
            return db.read(services.list_services), db.read(queue.count_jobs)

    def _versions(self) -> Result:
        return _failure_on_error(lambda: _check_versions(self._daemons_and_jobs()[0]))

    def _jobs(self) -> Result:
        return _failure_on_error(lambda: _check_jobs(self._daemons_and_jobs()[1]))

    def _job_types(self) -> Result:
        return _failure_on_error(lambda: _check_job_types(self._daemons_and_jobs()[1]))

    def _profiles(self) -> Result:
        return _failure_on_error(self._check_profiles)

    def _check_profiles(self) -> Result:
        with database.open_database(self._conf) as db:
            number = migrate_profiles.count_former_profiles(db)
        if not number:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            f'{number} device profiles have former names of keys, resource classes or '
            'traits: run cyborg-lite-dbsync migrate-profiles.',
        )

    def _online_migrations(self) -> Result:
        return _failure_on_error(self._check_online_migrations)

    def _check_online_migrations(self) -> Result:
        if not migration.is_expanded(self._conf.database.connection):
            return Result(
                Code.WARNING,
                'Not checked: run cyborg-lite-dbsync upgrade --expand first.',
            )
        with database.open_database(self._conf) as db:
            unfinished = db.read(online_migrations.list_unfinished)
        if not unfinished:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            f'Rows are not migrated: {", ".join(unfinished)}: '
            'run cyborg-lite-dbsync online_data_migrations.',
        )

    def _unmanaged_functions(self) -> Result:
        if self._conf.nova.attaches_unmanaged:
            return Result(Code.SUCCESS)
        return _failure_on_error(self._check_unmanaged)

    def _check_unmanaged(self) -> Result:
        with database.open_database(self._conf) as db:
            hosts = db.read(attach_handles.list_hosts_with_unmanaged_handles)
        if not hosts:
            return Result(Code.SUCCESS)
        return Result(
            Code.WARNING,
            'Nova 34 detaches functions from their driver that must keep it. Binds of '
            f'such functions fail on {", ".join(hosts)}. Set [nova] attaches_unmanaged '
            'only if Nova reads the key managed of a handle.',
        )

    _upgrade_checks = (
        ('Database schema', _schema),
        ('Message bus', _bus),
        ('Message signatures', _signatures),
        ('Daemon versions', _versions),
        ('Failed jobs', _jobs),
        ('Job types', _job_types),
        ('Online data migrations', _online_migrations),
        ('Device profiles', _profiles),
        ('Functions that keep their driver', _unmanaged_functions),
    )


def _failure_on_error(check: Callable[[], Result]) -> Result:
    try:
        return check()
    except CyborgError as error:
        return Result(Code.FAILURE, error.full_text)


def _check_signatures(conf: cfg.ConfigOpts) -> Result:
    if conf.message_signatures != 'required':
        return Result(
            Code.WARNING,
            f'[DEFAULT] message_signatures is {conf.message_signatures}: a client of '
            'the message bus can send messages of any host. Set it to required.',
        )
    message_keys.create_signer(conf, Role.CONDUCTOR)
    return Result(Code.SUCCESS)


def _check_schema(connection: str) -> Result:
    current, head = migration.current_revision(connection), migration.head_revision()
    if current == head:
        return Result(Code.SUCCESS)
    if migration.is_expanded(connection):
        return Result(
            Code.WARNING,
            f'The schema is at revision {current}, which all daemons can use. When '
            'they are of this version, run cyborg-lite-dbsync upgrade --contract.',
        )
    return Result(
        Code.FAILURE,
        f'The schema is at revision {current}, this version needs {head}: '
        'run cyborg-lite-dbsync upgrade.',
    )


def _check_versions(daemons: tuple[Service, ...]) -> Result:
    outdated = list_daemons_of_other_versions(daemons)
    if not outdated:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f'Restart the daemons of another version: {", ".join(outdated)}.',
    )


def _check_job_types(counts: tuple[JobCount, ...]) -> Result:
    """Check for jobs that only conductors of another release can run."""
    unknown = {
        count.type: count.count for count in counts if count.type not in _JOB_TYPES
    }
    if not unknown:
        return Result(Code.SUCCESS)
    jobs = ', '.join(f'{number} {kind}' for kind, number in unknown.items())
    return Result(
        Code.WARNING,
        f'Unfinished jobs of types that this version cannot run: {jobs}. Keep a '
        'conductor of the other version until they end.',
    )


def _check_jobs(counts: tuple[JobCount, ...]) -> Result:
    failed = sum(count.count for count in counts if count.state is JobState.FAILED)
    if not failed:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f'{format_count(failed, "failed job")}; run `openstack accelerator job list`.',
    )
