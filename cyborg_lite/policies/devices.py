# SPDX-License-Identifier: Apache-2.0
"""Policy rules for devices."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [*_list_basic_rules(), *_list_action_rules()]


def _list_basic_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:device:get_all',
            base.MANAGER_OR_ADMIN,
            'List devices.',
            'GET /v2/devices',
        ),
        base.build_rule(
            'cyborg:device:get_one',
            base.MANAGER_OR_ADMIN,
            'Show a device.',
            'GET /v2/devices/{uuid}',
        ),
        base.build_rule(
            'cyborg:device:update',
            base.ADMIN,
            'Change the mode or the configuration of a device, or start or end its '
            'quarantine or maintenance. For the latter, cyborg:device:disable or '
            'cyborg:device:enable is checked too.',
            'PATCH /v2/devices/{uuid}',
        ),
    ]


def _list_action_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:device:get_modes',
            base.ADMIN,
            'Show the modes of a device and what a change would do.',
            'GET /v2/devices/{uuid}/modes',
        ),
        base.build_rule(
            'cyborg:device:get_events',
            base.ADMIN,
            'Show the history of a device.',
            'GET /v2/devices/{uuid}/events',
        ),
        base.build_rule(
            'cyborg:device:get_configuration',
            base.ADMIN,
            'Show the hardware sets of a device and the changes of its configuration.',
            'GET /v2/devices/{uuid}/configuration',
        ),
        base.build_rule(
            'cyborg:device:enable',
            base.ADMIN,
            'Enable a device for scheduling.',
            'POST /v2/devices/{uuid}/enable',
        ),
        base.build_rule(
            'cyborg:device:disable',
            base.ADMIN,
            'Disable a device for scheduling.',
            'POST /v2/devices/{uuid}/disable',
        ),
    ]
