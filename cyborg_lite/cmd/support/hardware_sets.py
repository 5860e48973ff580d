# SPDX-License-Identifier: Apache-2.0
"""The file of hardware sets that ``[conductor] hardware_sets`` names."""

from pathlib import Path

import yaml

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.reconfiguration import HardwareSets, parse_hardware_sets


def read_hardware_sets(path: str) -> HardwareSets:
    """Return the sets of a file.

    :param path: empty: there are no sets
    :raises ConfigurationError: the file cannot be read, or names missing files
    """
    if not path:
        return HardwareSets()
    try:
        data = yaml.safe_load(Path(path).read_text(encoding='utf-8'))
    except OSError as error:
        reason = f'Cannot read [conductor] hardware_sets {path}: {error.strerror}.'
        raise ConfigurationError(reason=reason) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        text = ' '.join(str(error).split())
        reason = f'[conductor] hardware_sets {path} is no YAML: {text}'
        raise ConfigurationError(reason=reason) from None
    sets = parse_hardware_sets(data)
    inventory = Path(sets.directory, sets.inventory)
    if not inventory.exists():
        raise ConfigurationError(reason=f'Hardware sets: {inventory} does not exist.')
    return sets
