# SPDX-License-Identifier: Apache-2.0
"""Policy rules for the attributes of deployables."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:attribute:get_all',
            base.MANAGER_OR_ADMIN,
            'List attributes.',
            'GET /v2/attributes',
        ),
        base.build_rule(
            'cyborg:attribute:get_one',
            base.MANAGER_OR_ADMIN,
            'Show an attribute.',
            'GET /v2/attributes/{uuid}',
        ),
        base.build_rule(
            'cyborg:attribute:create',
            base.ADMIN,
            'Add an attribute to a deployable.',
            'POST /v2/attributes',
        ),
        base.build_rule(
            'cyborg:attribute:delete',
            base.ADMIN,
            'Delete an attribute.',
            'DELETE /v2/attributes/{uuid}',
        ),
    ]
