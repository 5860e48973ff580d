# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about configurations of devices; part of ``ConductorAPI``."""

from cyborg_lite.model.reconfiguration import ConfigurationRequest, DeviceConfiguration
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.generations import expect_generation
from cyborg_lite.rpc.transport import Caller


class ConfigurationCalls:
    """Typed calls about the configuration of devices."""

    _caller: Caller

    def show_configuration(
        self, context: RequestContext, uuid: str
    ) -> DeviceConfiguration:
        """Return the hardware sets of a device and its changes.

        :raises DeviceNotFound: the device does not exist
        """
        answer = self._caller.call(
            context, 'show_configuration', since='1.12', uuid=uuid
        )
        return wire.load(DeviceConfiguration, answer)

    def change_configuration(
        self,
        context: RequestContext,
        uuid: str,
        request: ConfigurationRequest,
        generation: int | None = None,
    ) -> DeviceConfiguration:
        """Start to change the configuration of a device; return its changes.

        :param generation: that the device must have; None: any
        :raises DeviceNotFound: the device does not exist
        :raises GenerationConflict: the device has another generation
        :raises InvalidSettings: the set declares no such settings
        :raises ReconfigurationRefused: the set is not for the device, or it is in use
        """
        answer = self._caller.call(
            context,
            'change_configuration',
            uuid=uuid,
            hardware_set=request.hardware_set,
            settings=dict(request.settings),
            actor=request.actor,
            **expect_generation(generation, '1.12'),
        )
        return wire.load(DeviceConfiguration, answer)
