# SPDX-License-Identifier: Apache-2.0
"""Policy rules of the API."""

from oslo_policy import policy

from cyborg_lite.policies.base import BASE_RULES
from cyborg_lite.policies.rules import RULES


def list_rules() -> list[policy.RuleDefault]:
    """Return all rules, for the enforcer; see also ``api/openapi/routes.py``."""
    base = [policy.RuleDefault(name, *rule) for name, rule in BASE_RULES.items()]
    return base + [
        policy.RuleDefault(name, *rule, scope_types=['project'])
        for name, rule in RULES.items()
    ]
