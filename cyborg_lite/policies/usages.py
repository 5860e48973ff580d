# SPDX-License-Identifier: Apache-2.0
"""Policy rules for the types, the use and the limits of units."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:usage:get',
            base.READER_OR_ADMIN,
            'Show the use of units of the project, and for an admin of all projects.',
            'GET /v2/usages',
        ),
        base.build_rule(
            'cyborg:device_type:get_all',
            base.READER_OR_ADMIN,
            'List the types of devices that the device profiles of the project name.',
            'GET /v2/device_types',
        ),
        base.build_rule(
            'cyborg:limit:get_all',
            base.READER_OR_ADMIN,
            'Show the limits of the project of the token, and what it uses.',
            'GET /v2/limits',
        ),
    ]
