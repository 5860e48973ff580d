# SPDX-License-Identifier: Apache-2.0
"""Changes of the configuration of devices that begin at once."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from cyborg_lite.model.devices.reconfiguration import (
    ConfigurationRequest,
    DeviceConfiguration,
    Reconfiguration,
    ReconfigurationState,
)
from tests.support.api.conductor import LocalConductor


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
