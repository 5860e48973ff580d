# SPDX-License-Identifier: Apache-2.0
"""Policy rules for bitstreams."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:bitstream:get_all',
            base.ADMIN,
            'List the bitstreams in Glance that the service can read, of all '
            'projects, and show which of them a deployable accepts.',
            'GET /v2/bitstreams',
        )
    ]
