# SPDX-License-Identifier: Apache-2.0
"""Registers the options of all sections and parses the configuration files.

A section is a module of this package that exports ``GROUP`` and ``OPTIONS``. Only
``cyborg_lite.cmd`` imports this package. Other packages receive values.
"""

import copy
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from oslo_config import cfg
from oslo_log import log
from oslo_service import opts as service_options

from cyborg_lite.conf import (
    agent,
    api,
    conductor,
    database,
    default,
    glance,
    limits,
    notifications,
    nova,
    oslo_limit,
    placement,
    upgrade_levels,
)
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.version import VERSION

VARIABLE: Final = 'CYBORG_LITE_CONFIG'
_COMPLETION_OPTION: Final = '--shell_completion'
_COMPLETION_FILE: Final = Path(__file__).with_name('completion.bash')
DEFAULT_FILE: Final = Path('/etc/cyborg-lite/cyborg-lite.conf')

_SECTIONS: Final[tuple[ModuleType, ...]] = (
    default,
    api,
    conductor,
    agent,
    database,
    placement,
    nova,
    glance,
    notifications,
    limits,
    oslo_limit,
    upgrade_levels,
)

# The default of oslo.log, but with the ids of the caller and without the fields that
# this service never sets.
_CONTEXT_FORMAT: Final = (
    '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s '
    '[%(global_request_id)s %(request_id)s %(user)s %(project_id)s] %(message)s'
)
LOG_LEVELS: Final = (
    'amqp=WARN',
    'keystoneauth=WARN',
    # A warning for each attempt. The clients log the begin and the end of an outage.
    'keystoneauth.identity=ERROR',
    'keystonemiddleware=WARN',
    'oslo.messaging=INFO',
    'oslo_messaging=INFO',
    'oslo_policy=INFO',
    'sqlalchemy=WARN',
    'stevedore=WARN',
    'urllib3.connectionpool=WARN',
    'waitress.queue=ERROR',  # a warning for each request that waits for a thread
    'wsme=WARN',
)


def parse(
    arguments: Sequence[str] | None,
    prog: str,
    config_files: Sequence[str] | None = None,
    command_line: Sequence[cfg.Opt] = (),
    description: str | None = None,
) -> cfg.ConfigOpts:
    """Parse the command line and the configuration files of one process.

    The files are taken from the first source that names any: ``--config-file``,
    ``config_files``, the environment variable CYBORG_LITE_CONFIG, the default file if
    it exists. Every value is checked, so that an invalid one stops the start.

    :param arguments: None: those of this process
    :param config_files: None if the caller names no files
    :param command_line: options of this command only
    :param description: text of ``--help``; None: no text
    :raises SystemExit: an option, file or value is invalid, or ``--help``,
        ``--version`` or ``--shell_completion`` was answered
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if _COMPLETION_OPTION in arguments:
        # The option of oslo.config fails, because the library lacks its templates.
        sys.stdout.write(_COMPLETION_FILE.read_text())
        raise SystemExit(0)
    set_library_defaults()
    conf = cfg.ConfigOpts()
    for section in _SECTIONS:
        # oslo.config does not treat [DEFAULT] as a group.
        group = None if section.GROUP == default.GROUP else section.GROUP
        conf.register_opts(section.OPTIONS, group=group)
    log.register_options(conf)
    service_options.register_service_opts(conf)
    conf.register_cli_opts(command_line)
    try:
        conf(
            args=arguments,
            project='cyborg-lite',
            prog=prog,
            version=VERSION,
            description=description,
            default_config_files=_select_files(config_files),
            default_config_dirs=[],
        )
        _check_values(conf)
    except cfg.Error as error:
        raise SystemExit(f'{prog}: {error}') from None
    return conf


def set_up_logging(conf: cfg.ConfigOpts) -> None:
    """Configure logging from the log options. Call it once per process.

    :raises ConfigurationError: a log file cannot be opened, or a value is invalid
    """
    try:
        log.setup(conf, 'cyborg-lite', VERSION)
    except (OSError, ValueError, log.LogConfigError) as error:
        raise ConfigurationError(reason=f'Cannot set up the log: {error}.') from None


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options of each group, for oslo-config-generator."""
    return [
        # The options of an authentication plugin are registered when it is loaded.
        (
            section.GROUP,
            _unwrap_help(getattr(section, 'SAMPLE_OPTIONS', section.OPTIONS)),
        )
        for section in _SECTIONS
    ]


def _unwrap_help(options: Sequence[cfg.Opt]) -> list[cfg.Opt]:
    """Copy the options with one-line help texts, which the generator wraps itself."""
    copies = [copy.copy(option) for option in options]
    for option in copies:
        option.help = ' '.join((option.help or '').split())
    return copies


def set_library_defaults() -> None:
    """Override defaults of oslo.log. oslo-config-generator calls it as well."""
    log.set_defaults(
        logging_context_format_string=_CONTEXT_FORMAT,
        default_log_levels=list(LOG_LEVELS),
    )


def _check_values(conf: cfg.ConfigOpts) -> None:
    """Read every option: oslo.config validates a value only when it is read."""
    for section in _SECTIONS:
        values = conf if section.GROUP == default.GROUP else conf[section.GROUP]
        for option in section.OPTIONS:
            getattr(values, option.dest)


def _select_files(config_files: Sequence[str] | None) -> list[str]:
    if config_files is not None:
        return list(config_files)
    path = os.environ.get(VARIABLE)
    if path:
        return [path]
    return [str(DEFAULT_FILE)] if DEFAULT_FILE.is_file() else []
