# SPDX-License-Identifier: Apache-2.0
"""Rules of the daemons."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:service:get_all',
            base.ADMIN,
            'List the daemons of this service.',
            'GET /v2/services',
        ),
    ]
