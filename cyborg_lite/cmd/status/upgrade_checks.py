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
from cyborg_lite.model.jobs import JobCount, JobState
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.text import format_count
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.security.keys import Role

_JOB_TYPES: Final = frozenset(str(job_type) for job_type in OperationKind)


def _warn(text: str) -> Result:
    """Return a warning with the text; success if it is empty."""
    return Result(Code.WARNING, text) if text else Result(Code.SUCCESS)


def _check_schema(conf: cfg.ConfigOpts) -> Result:
    connection = conf.database.connection
    current, head = migration.current_revision(connection), migration.head_revision()
    if current == head:
        return Result(Code.SUCCESS)
    if migration.is_expanded(connection):
        return _warn(
            f'The schema is at revision {current}, which all daemons can use. When '
            'they are of this version, run cyborg-lite-dbsync upgrade --contract.'
        )
    return Result(
        Code.FAILURE,
        f'The schema is at revision {current}, this version needs {head}: '
        'run cyborg-lite-dbsync upgrade.',
    )


def _check_bus(conf: cfg.ConfigOpts) -> Result:
    url = address.without_password(transport.address(conf))
    is_default = url in ('rabbit:/', 'rabbit:///')
    text = 'transport_url is not set; the default is RabbitMQ on this host.'
    return _warn(text if is_default else '')


def _check_signatures(conf: cfg.ConfigOpts) -> Result:
    if conf.message_signatures != 'required':
        return _warn(
            f'[DEFAULT] message_signatures is {conf.message_signatures}: a client of '
            'the message bus can send messages of any host. Set it to required.'
        )
    message_keys.create_signer(conf, Role.CONDUCTOR)
    return Result(Code.SUCCESS)


def _check_versions(conf: cfg.ConfigOpts) -> Result:
    with database.open_database(conf) as db:
        daemons = db.read(services.list_services)
    outdated = ', '.join(list_daemons_of_other_versions(daemons))
    return _warn(outdated and f'Restart the daemons of another version: {outdated}.')


def _count_jobs(conf: cfg.ConfigOpts) -> tuple[JobCount, ...]:
    with database.open_database(conf) as db:
        return db.read(queue.count_jobs)


def _check_failed_jobs(conf: cfg.ConfigOpts) -> Result:
    counts = _count_jobs(conf)
    failed = sum(count.count for count in counts if count.state is JobState.FAILED)
    text = (
        f'{format_count(failed, "failed job")}; '
        'run `openstack accelerator operation list`.'
    )
    return _warn(text if failed else '')


def _check_job_types(conf: cfg.ConfigOpts) -> Result:
    """Check for jobs that only conductors of another release can run."""
    counts = _count_jobs(conf)
    unknown = {
        count.type: count.count for count in counts if count.type not in _JOB_TYPES
    }
    jobs = ', '.join(f'{number} {kind}' for kind, number in unknown.items())
    text = (
        f'Unfinished jobs of types that this version cannot run: {jobs}. Keep a '
        'conductor of the other version until they end.'
    )
    return _warn(text if unknown else '')


def _check_online_migrations(conf: cfg.ConfigOpts) -> Result:
    if not migration.is_expanded(conf.database.connection):
        return _warn('Not checked: run cyborg-lite-dbsync upgrade --expand first.')
    with database.open_database(conf) as db:
        unfinished = ', '.join(db.read(online_migrations.list_unfinished))
    text = (
        f'Rows are not migrated: {unfinished}: '
        'run cyborg-lite-dbsync online_data_migrations.'
    )
    return _warn(text if unfinished else '')


def _check_profiles(conf: cfg.ConfigOpts) -> Result:
    with database.open_database(conf) as db:
        number = migrate_profiles.count_former_profiles(db)
    text = (
        f'{number} device profiles have former names of keys, resource classes or '
        'traits: run cyborg-lite-dbsync migrate-profiles.'
    )
    return _warn(text if number else '')


def _check_unmanaged_functions(conf: cfg.ConfigOpts) -> Result:
    if conf.nova.attaches_unmanaged:
        return Result(Code.SUCCESS)
    with database.open_database(conf) as db:
        hosts = ', '.join(db.read(attach_handles.list_hosts_with_unmanaged_handles))
    text = (
        'Nova 34 detaches functions from their driver that must keep it. Binds of '
        f'such functions fail on {hosts}. Set [nova] attaches_unmanaged '
        'only if Nova reads the key managed of a handle.'
    )
    return _warn(text if hosts else '')


class Checks(UpgradeCommands):
    """The upgrade checks; the details of a failed check name the remedy."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def _run(self, check: Callable[[cfg.ConfigOpts], Result]) -> Result:
        try:
            return check(self._conf)
        except CyborgError as error:
            return Result(Code.FAILURE, error.full_text)

    _upgrade_checks = (
        ('Database schema', (_run, {'check': _check_schema})),
        ('Message bus', (_run, {'check': _check_bus})),
        ('Message signatures', (_run, {'check': _check_signatures})),
        ('Daemon versions', (_run, {'check': _check_versions})),
        ('Failed jobs', (_run, {'check': _check_failed_jobs})),
        ('Job types', (_run, {'check': _check_job_types})),
        ('Online data migrations', (_run, {'check': _check_online_migrations})),
        ('Device profiles', (_run, {'check': _check_profiles})),
        (
            'Functions that keep their driver',
            (_run, {'check': _check_unmanaged_functions}),
        ),
    )
