# SPDX-License-Identifier: Apache-2.0
"""Policy rules for deployables."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:deployable:get_all',
            base.MANAGER_OR_ADMIN,
            'List deployables.',
            'GET /v2/deployables',
        ),
        base.build_rule(
            'cyborg:deployable:get_one',
            base.MANAGER_OR_ADMIN,
            'Show a deployable.',
            'GET /v2/deployables/{uuid}',
        ),
        base.build_rule(
            'cyborg:deployable:program',
            base.ADMIN,
            'Program a deployable with a bitstream.',
            'PATCH /v2/deployables/{uuid}/program',
            'PATCH /v2/deployables/{uuid}/program/{same_uuid}',
        ),
    ]
