# SPDX-License-Identifier: Apache-2.0
"""Policy rules for cleaning runs of devices."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:cleaning:get_all',
            base.ADMIN,
            'List the units of a device and their cleaning runs.',
            'GET /v2/devices/{uuid}/cleanings',
        ),
        base.build_rule(
            'cyborg:cleaning:retry',
            base.ADMIN,
            'Clean units again whose cleaning has failed, or that were for one use.',
            'POST /v2/devices/{uuid}/cleanings/retry',
        ),
        base.build_rule(
            'cyborg:cleaning:reset',
            base.ADMIN,
            'Reset the free units of a device.',
            'POST /v2/devices/{uuid}/reset',
        ),
        base.build_rule(
            'cyborg:cleaning:accept',
            base.ADMIN,
            'Declare units clean although no cleaning run has succeeded.',
            'POST /v2/devices/{uuid}/cleanings/accept',
        ),
    ]
