# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of the conductor about the configuration of devices."""

from cyborg_lite.model.reconfiguration import ConfigurationRequest, DeviceConfiguration
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.configurations import ConfigurationCalls
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.recording_caller import RecordingCaller

CONTEXT = RequestContext()


class Calls(ConfigurationCalls):
    """The calls with a caller that records them."""

    def __init__(self) -> None:
        self._caller = self.caller = RecordingCaller()


def test_show_configuration_parses_answer() -> None:
    calls = Calls()
    configuration = DeviceConfiguration('d', 'compute-1')
    calls.caller.answer = wire.dump(configuration)
    assert calls.show_configuration(CONTEXT, 'd') == configuration
    assert (calls.caller.method, calls.caller.arguments) == (
        'show_configuration',
        {'uuid': 'd'},
    )


def test_change_configuration_sends_settings() -> None:
    calls = Calls()
    calls.caller.answer = wire.dump(DeviceConfiguration('d', 'compute-1'))
    request = ConfigurationRequest('nic', {'vfs': 8}, 'admin')
    calls.change_configuration(CONTEXT, 'd', request)
    expected = {
        'uuid': 'd',
        'hardware_set': 'nic',
        'settings': {'vfs': 8},
        'actor': 'admin',
    }
    assert calls.caller.arguments == expected
    calls.change_configuration(CONTEXT, 'd', request, 3)
    assert calls.caller.arguments == {**expected, 'generation': 3}
