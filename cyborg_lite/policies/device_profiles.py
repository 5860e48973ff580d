# SPDX-License-Identifier: Apache-2.0
"""Policy rules for device profiles."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:device_profile:get_all',
            base.READER_OR_ADMIN,
            'List device profiles.',
            'GET /v2/device_profiles',
        ),
        base.build_rule(
            'cyborg:device_profile:get_one',
            base.READER_OR_ADMIN,
            'Show a device profile.',
            'GET /v2/device_profiles/{device_profile}',
        ),
        base.build_rule(
            'cyborg:device_profile:create',
            base.ADMIN,
            'Create a device profile.',
            'POST /v2/device_profiles',
        ),
        base.build_rule(
            'cyborg:device_profile:update',
            base.ADMIN,
            'Change a device profile.',
            'PATCH /v2/device_profiles/{device_profile}',
        ),
        *_list_capacity_rules(),
        base.build_rule(
            'cyborg:device_profile:access',
            base.ADMIN,
            'Show and change which projects may use a device profile that is not '
            'public.',
            'GET /v2/device_profiles/{device_profile}/access',
            'POST /v2/device_profiles/{device_profile}/access',
            'DELETE /v2/device_profiles/{device_profile}/access',
        ),
        base.build_rule(
            'cyborg:device_profile:delete',
            base.ADMIN,
            'Delete device profiles.',
            'DELETE /v2/device_profiles',
            'DELETE /v2/device_profiles/{device_profile}',
        ),
    ]


def _list_capacity_rules() -> list[policy.DocumentedRuleDefault]:
    """Return the rules about the hosts on which a device profile fits."""
    return [
        base.build_rule(
            'cyborg:device_profile:explain',
            base.ADMIN,
            'Explain on which hosts a device profile fits, and what other hosts lack.',
            'POST /v2/device_profiles/{device_profile}/explain',
        ),
        base.build_rule(
            'cyborg:device_profile:capacity',
            base.ADMIN,
            'Count the further servers that fit on each host with a device profile.',
            'GET /v2/device_profiles/{device_profile}/capacity',
        ),
    ]
