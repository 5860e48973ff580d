# SPDX-License-Identifier: Apache-2.0
"""The rules of the API, a module for each noun, with the persona defaults."""

from itertools import chain

from oslo_policy import policy

from cyborg_lite.policies import (
    arqs,
    attributes,
    base,
    bitstreams,
    deployables,
    device_profiles,
    devices,
    jobs,
    services,
)

_NOUNS = (
    device_profiles,
    arqs,
    devices,
    deployables,
    attributes,
    bitstreams,
    jobs,
    services,
)


def list_rules() -> list[policy.RuleDefault]:
    """All of them, for the enforcer and for the generator of sample files."""
    return [*base.list_rules(), *chain.from_iterable(n.list_rules() for n in _NOUNS)]
