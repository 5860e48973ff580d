# SPDX-License-Identifier: Apache-2.0
"""Configuration: the sections put together, and read.

A section is a module of this package that exports ``GROUP`` and ``OPTIONS``. Only
``cyborg_lite.cmd`` imports this package; what lies below is handed values.
"""

import copy
import importlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from oslo_config import cfg
from oslo_log import log
from oslo_service import opts as service_options

from cyborg_lite.conf import default
from cyborg_lite.version import version

VARIABLE: Final = 'CYBORG_LITE_CONFIG'
DEFAULT_FILE: Final = Path('/etc/cyborg-lite/cyborg-lite.conf')

_SECTIONS: Final = (
    'default',
    'api',
    'conductor',
    'agent',
    'database',
    'placement',
    'nova',
    'glance',
)

# The library's own format, with the caller by id and without fields never filled.
_WITH_REQUEST: Final = (
    '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s '
    '[%(global_request_id)s %(request_id)s %(user)s %(project_id)s] %(message)s'
)
_QUIETER: Final = (
    'amqp=WARN',
    'keystoneauth=WARN',
    'keystonemiddleware=WARN',
    'oslo.messaging=INFO',
    'oslo_messaging=INFO',
    'oslo_policy=INFO',
    'sqlalchemy=WARN',
    'stevedore=WARN',
    'urllib3.connectionpool=WARN',
    'wsme=WARN',
)


def parse(
    arguments: Sequence[str],
    prog: str,
    config_files: Sequence[str] | None = None,
    command_line: Sequence[cfg.Opt] = (),
) -> cfg.ConfigOpts:
    """Read the command line and the configuration files of one process.

    The files are those that ``--config-file`` names; without it ``config_files``;
    without them the one in the environment variable CYBORG_LITE_CONFIG; else
    /etc/cyborg-lite/cyborg-lite.conf where there is one. ``command_line`` are the
    options of this command alone. A mistake ends the process with what is wrong.
    """
    set_library_defaults()
    conf = cfg.ConfigOpts()
    for section in _sections():
        # [DEFAULT] is no group to the library.
        group = None if section.GROUP == default.GROUP else section.GROUP
        conf.register_opts(section.OPTIONS, group=group)
    log.register_options(conf)
    service_options.register_service_opts(conf)
    conf.register_cli_opts(command_line)
    try:
        conf(
            args=list(arguments),
            project='cyborg-lite',
            prog=prog,
            version=version(),
            default_config_files=_files(config_files),
            default_config_dirs=[],
        )
        _read_all(conf)
    except cfg.Error as error:
        raise SystemExit(f'{prog}: {error}') from None
    return conf


def set_up_logging(conf: cfg.ConfigOpts) -> None:
    """Send the log where the configuration says. Once in a process."""
    log.setup(conf, 'cyborg-lite', version())


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """For oslo-config-generator."""
    return [
        # Some sections have options that a plugin registers when it is loaded.
        (
            section.GROUP,
            _in_one_line(getattr(section, 'SAMPLE_OPTIONS', section.OPTIONS)),
        )
        for section in _sections()
    ]


def _in_one_line(options: Sequence[cfg.Opt]) -> list[cfg.Opt]:
    """The generator breaks lines itself, and would keep ours too."""
    copies = [copy.copy(option) for option in options]
    for option in copies:
        option.help = ' '.join((option.help or '').split())
    return copies


def set_library_defaults() -> None:
    """Our defaults for options of the libraries, in the sample file too."""
    log.set_defaults(
        logging_context_format_string=_WITH_REQUEST,
        default_log_levels=list(_QUIETER),
    )


def _sections() -> list[ModuleType]:
    found = []
    for name in _SECTIONS:
        # While the rooms are being built: a section that is not there yet is no error.
        if importlib.util.find_spec(f'{__name__}.{name}'):
            found.append(importlib.import_module(f'{__name__}.{name}'))
    return found


def _read_all(conf: cfg.ConfigOpts) -> None:
    """Let a bad value be found now: the library looks at one only when it is used."""
    for section in _sections():
        values = conf if section.GROUP == default.GROUP else conf[section.GROUP]
        for option in section.OPTIONS:
            getattr(values, option.dest)


def _files(given: Sequence[str] | None) -> list[str]:
    if given is not None:
        return list(given)
    named = os.environ.get(VARIABLE)
    if named:
        return [named]
    return [str(DEFAULT_FILE)] if DEFAULT_FILE.is_file() else []
