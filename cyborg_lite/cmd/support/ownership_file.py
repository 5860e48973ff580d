# SPDX-License-Identifier: Apache-2.0
"""The ownership file, in YAML. For its content see ``model/ownership/plan.py``."""

from pathlib import Path

import yaml
from oslo_config import cfg
from oslo_log import log

from cyborg_lite.agent.ownership.nova_files import read_file_state
from cyborg_lite.agent.ownership.ownership import Ownership
from cyborg_lite.conf.agent import NOVA_CONFIG_FILES
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.ownership.plan import OwnershipPlan, parse_plan

LOG = log.getLogger(__name__)


class OwnershipFile:
    """The ownership file of a daemon, read again after each change."""

    def __init__(self, path: str) -> None:
        """Read the file.

        :param path: empty: there is no file, and no owner is stated
        :raises ConfigurationError: the file cannot be read, or its content is invalid
        """
        self._path = path
        self._state = read_file_state(Path(path))
        self._plan = read_plan(path) if path else OwnershipPlan()

    def read(self) -> OwnershipPlan:
        """Return the plan. An invalid file does not replace the last valid plan."""
        state = read_file_state(Path(self._path)) if self._path else self._state
        if state != self._state:
            self._state = state
            try:
                self._plan = read_plan(self._path)
            except ConfigurationError as error:
                LOG.warning(
                    'Ignoring the changed ownership file, its last valid content is '
                    'used: %s',
                    error.text,
                )
        return self._plan


def build_ownership(conf: cfg.ConfigOpts, host: Host) -> Ownership:
    """Return the comparison with the options of the operator and of Nova.

    :raises ConfigurationError: the ownership file is invalid
    """
    return Ownership(
        host,
        conf.agent.nova_config_files,
        conf.agent.excluded_devices,
        NOVA_CONFIG_FILES,
        OwnershipFile(conf.agent.ownership_file).read,
    )


def read_plan(path: str) -> OwnershipPlan:
    """Return the plan in a file.

    :raises ConfigurationError: the file cannot be read, or its content is invalid
    """
    try:
        text = Path(path).read_text(encoding='utf-8')
        # It converts no scalars: YAML reads addresses such as 0000:41:00.0 as numbers.
        content = yaml.load(text, Loader=yaml.BaseLoader)  # builds texts only
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = f'Ownership file {path} cannot be read: {error}'
        raise ConfigurationError(reason=reason) from None
    return parse_plan(content)
