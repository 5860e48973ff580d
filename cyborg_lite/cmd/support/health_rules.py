# SPDX-License-Identifier: Apache-2.0
"""The health rules that the configuration of an agent selects."""

from pathlib import Path

from oslo_config import cfg

from cyborg_lite.agent.inventory.health_rule_files import load_rules
from cyborg_lite.model.devices.health_rules import HealthRules


def read_health_rules(conf: cfg.ConfigOpts) -> HealthRules:
    """Return the shipped rules with the changes of the operator.

    :raises ConfigurationError: a file cannot be read, or a rule is invalid
    """
    window = conf.agent.pci_error_period
    limits = {
        f'pci-{severity}': {'threshold': conf.agent[f'{severity}_error_limit']}
        for severity in ('fatal', 'nonfatal', 'correctable')
    }
    options = {name: {**values, 'window': window} for name, values in limits.items()}
    return load_rules(Path(conf.agent.hardware_directory), options)
