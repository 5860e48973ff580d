# SPDX-License-Identifier: Apache-2.0
"""Rules of bitstreams."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:bitstream:get_all',
            base.ADMIN,
            'List the bitstreams that this service finds in Glance, whoever owns '
            'them, and which of them a deployable takes.',
            'GET /v2/bitstreams',
        ),
    ]
