# SPDX-License-Identifier: Apache-2.0
"""Devices with modes and hardware sets, and changes of them that begin at once."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from cyborg_lite.model.devices.modes import (
    DevicePlan,
    ModeChange,
    ModePlan,
    OfferedInventory,
)
from cyborg_lite.model.devices.reconfiguration import (
    ConfigurationRequest,
    DeviceConfiguration,
    Reconfiguration,
    ReconfigurationState,
    SetView,
)
from cyborg_lite.model.jobs import JobState
from tests.builders.device_rows import add_device
from tests.support.api.conductor import LocalConductor

SETTINGS: Final = {'vgpus': {'type': 'integer', 'maximum': 16}}
_SYM: Final = OfferedInventory('CUSTOM_QAT', 16, ('CUSTOM_QAT_SERVICE_SYM',))
_DC: Final = OfferedInventory('CUSTOM_QAT', 16, ('CUSTOM_QAT_SERVICE_DC',))


def add_modes(conductor: LocalConductor, *arqs: str) -> str:
    """Add a device with the modes dc and sym; return its uuid.

    :param arqs: users of the device
    """
    uuid = add_device(conductor.database).uuid
    sym = ModePlan('sym', is_current=False, appears=(_SYM,), vanishes=(_DC,))
    modes = ModePlan('dc', is_current=True), sym
    conductor.answers['plan_modes'] = DevicePlan(
        uuid, 'compute-1', '0000:e8:00.0', modes, declared='sym', arqs=arqs
    )
    return uuid


def find_plan(conductor: LocalConductor) -> DevicePlan:
    """Return the plan of the device with modes."""
    plan = conductor.answers['plan_modes']
    assert isinstance(plan, DevicePlan)
    return plan


def start_mode_change(conductor: LocalConductor) -> None:
    """Have the conductor accept the change to the mode sym."""
    change = ModeChange('sym', JobState.WAITING)
    conductor.answers['change_mode'] = replace(find_plan(conductor), change=change)


def add_configuration(conductor: LocalConductor, *arqs: str) -> str:
    """Add a device with a hardware set; return its uuid.

    :param arqs: users of the device
    """
    uuid = add_device(conductor.database).uuid
    sets = (SetView('nvidia', SETTINGS, ('vgpus',)),)
    configuration = DeviceConfiguration(uuid, 'compute-1', sets, arqs)
    conductor.answers['show_configuration'] = configuration
    return uuid


def start_change(conductor: LocalConductor) -> None:
    """Have the conductor add a waiting change for each request."""
    before = conductor.answers['show_configuration']
    assert isinstance(before, DeviceConfiguration)

    def change(
        uuid: str, request: ConfigurationRequest, generation: int | None = None
    ) -> DeviceConfiguration:
        change = Reconfiguration(
            uuid=str(uuid4()),
            hardware_set=request.hardware_set,
            settings=request.settings,
            state=ReconfigurationState.WAITING,
            actor=request.actor,
            created_at=datetime.now(UTC),
        )
        conductor.answers['show_configuration'] = replace(before, changes=(change,))
        return replace(before, changes=(change,))

    conductor.answers['change_configuration'] = change
