# SPDX-License-Identifier: Apache-2.0
"""Policy rules for the daemons."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:service:get_all',
            base.ADMIN,
            'List the daemons of the service.',
            'GET /v2/services',
        ),
        base.build_rule(
            'cyborg:service:delete',
            base.ADMIN,
            'Delete a daemon that is down.',
            'DELETE /v2/services/{uuid}',
        ),
    ]
