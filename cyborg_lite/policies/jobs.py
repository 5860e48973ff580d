# SPDX-License-Identifier: Apache-2.0
"""Policy rules for jobs that clients follow."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    """Return the rules for programming jobs."""
    return [
        base.build_rule(
            'cyborg:job:get_one',
            base.ADMIN,
            'Show the progress of a programming job. Users other than '
            'administrators see only the jobs of their project.',
            'GET /v2/jobs/{uuid}',
        ),
    ]
