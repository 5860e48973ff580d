# SPDX-License-Identifier: Apache-2.0
"""Rules of deployables."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:deployable:get_all',
            base.MANAGER_OR_ADMIN,
            'List deployables.',
            'GET /v2/deployables',
        ),
        base.documented(
            'cyborg:deployable:get_one',
            base.MANAGER_OR_ADMIN,
            'Show a deployable.',
            'GET /v2/deployables/{uuid}',
        ),
        base.documented(
            'cyborg:deployable:program',
            base.ADMIN,
            'Load a bitstream into a deployable.',
            'PATCH /v2/deployables/{uuid}/program',
            'PATCH /v2/deployables/{uuid}/program/{same_uuid}',
        ),
    ]
