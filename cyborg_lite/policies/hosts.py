# SPDX-License-Identifier: Apache-2.0
"""Policy rules for hosts."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:host:get_all',
            base.ADMIN,
            'List the hosts with their agents.',
            'GET /v2/hosts',
        ),
        base.build_rule(
            'cyborg:host:get_one',
            base.ADMIN,
            'Show a host with its agent.',
            'GET /v2/hosts/{name}',
        ),
        base.build_rule(
            'cyborg:host:update',
            base.ADMIN,
            'Disable or enable all devices of a host.',
            'PATCH /v2/hosts/{name}',
        ),
        base.build_rule(
            'cyborg:host:delete',
            base.ADMIN,
            'Delete a host that is down, with its devices.',
            'DELETE /v2/hosts/{name}',
        ),
        base.build_rule(
            'cyborg:host:get_topology',
            base.ADMIN,
            'Show the devices of a host and the availability of their units. Only '
            'administrators see the ARQs, instances and projects that use the units.',
            'GET /v2/hosts/{name}/topology',
        ),
    ]
