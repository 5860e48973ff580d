# SPDX-License-Identifier: Apache-2.0
"""Policy rules of the API, one module per type of object."""

from itertools import chain

from oslo_policy import policy

from cyborg_lite.policies import (
    arqs,
    attributes,
    base,
    bitstreams,
    cleanings,
    deployables,
    device_profiles,
    devices,
    hosts,
    operations,
    services,
    usages,
)

_MODULES = (
    device_profiles,
    arqs,
    devices,
    hosts,
    cleanings,
    deployables,
    attributes,
    bitstreams,
    operations,
    services,
    usages,
)


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules, for the enforcer and the generator of sample files."""
    return [
        *base.list_rules(),
        *chain.from_iterable(module.list_rules() for module in _MODULES),
    ]
