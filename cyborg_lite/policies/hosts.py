# SPDX-License-Identifier: Apache-2.0
"""Policy rules for hosts."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:host:get_topology',
            base.ADMIN,
            'Show the devices of a host and the availability of their units. Only '
            'administrators see the ARQs, instances and projects that use the units.',
            'GET /v2/hosts/{name}/topology',
        )
    ]
