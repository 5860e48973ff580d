# SPDX-License-Identifier: Apache-2.0
"""Rules of jobs that clients follow."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:job:get_one',
            base.ADMIN,
            'Show how far the programming of a deployable has come. Whoever is no '
            'administrator sees what his own project has started.',
            'GET /v2/jobs/{uuid}',
        ),
    ]
