# SPDX-License-Identifier: Apache-2.0
"""Schemas of the bodies of requests, from ``bodies.yaml``."""

from importlib import resources
from typing import Any, Final

import yaml

from cyborg_lite.api.call.validation import Schema
from cyborg_lite.model.devices.cleaning import MAX_ACTOR
from cyborg_lite.model.devices.reconfiguration import MAX_SETTINGS, SET_NAME
from cyborg_lite.model.operations import REQUESTABLE


def _read() -> dict[str, Any]:
    """Return the JSON Schemas by name, with what the model decides."""
    text = resources.files(__package__).joinpath('bodies.yaml').read_text()
    bodies: dict[str, Any] = yaml.safe_load(text)
    bodies['parts']['actor']['maxLength'] = MAX_ACTOR
    configuration = bodies['parts']['configuration']['properties']
    configuration['set']['pattern'] = f'^{SET_NAME.pattern}$'
    configuration['settings']['maxProperties'] = MAX_SETTINGS
    kind = bodies['create_operation']['properties']['kind']
    kind['enum'] = [kind.value for kind in REQUESTABLE]
    return bodies


_BODIES: Final = _read()

CREATE_ARQS: Final = Schema(_BODIES['create_arqs'])
PATCH_ARQS: Final = Schema(_BODIES['patch_arqs'])

RETRY_CLEANING: Final = Schema(_BODIES['retry_cleaning'], optional=True)
ACCEPT_UNIT: Final = Schema(_BODIES['accept_unit'])
RESET_UNIT: Final = Schema(_BODIES['reset_unit'], optional=True)

CREATE_ATTRIBUTE: Final = Schema(_BODIES['create_attribute'])
PROGRAM: Final = Schema(_BODIES['program'], is_patch=True)

CREATE_PROFILES: Final = Schema(_BODIES['create_profiles'])
PATCH_PROFILE: Final = Schema(_BODIES['patch_profile'], is_patch=True)
PROFILE_CHANGES: Final = Schema(_BODIES['profile_changes'])
PROFILE_ACCESS: Final = Schema(_BODIES['profile_access'])

PATCH_STATUS: Final = Schema(_BODIES['patch_status'], is_patch=True)
PATCH_DEVICE: Final = Schema(_BODIES['patch_device'], is_patch=True)

CREATE_OPERATION: Final = Schema(_BODIES['create_operation'])
