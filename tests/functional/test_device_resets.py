# SPDX-License-Identifier: Apache-2.0
"""Cards are reset between two tenants and by health rules: real daemons and processes.

The privileged process of the agent writes to the files of an emulated host.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from devstack.launcher.rest import Answer
from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts import rooted_privileges
from tests.hosts.fixture_agent import FixtureAgent
from tests.hosts.fixture_hosts import without
from tests.hosts.privileged_process import install_privileges
from tests.servers.stack import ADMIN, Instance, expect
from tests.servers.vgpu_fixtures import cloud

__all__ = ['cloud']

_GPU: Final = '0000:c3:00.0'  # bound to vfio-pci
_OTHERS: Final = ('1b', '43', '52', '61', '9d', 'd1', 'df')  # buses
_OPERATOR: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}


class GpuHost(FixtureAgent):
    """Host with one GPU, whose agent may write to the files of the host."""

    def __init__(self, cloud: FaultyCloud, directory: Path) -> None:
        super().__init__(cloud, directory, 'h100-hgx')
        root = directory / 'look-0'  # of the first start
        install_privileges(root)
        command = rooted_privileges.build_command(str(root))
        self.settings = {
            'agent': {'privileged_command': command},
            'nvidia_gpu_driver': {'cleaning': 'after-use'},
        }
        self._lines = 0

    def start(self) -> None:
        self.switch_on(*(without(f'0000:{bus}:00.0') for bus in _OTHERS))
        self.function = (self.root / 'sys/bus/pci/devices' / _GPU).resolve()

    def break_reset(self) -> None:
        """Let the kernel refuse a reset: nobody can write to a directory."""
        (self.function / 'reset').unlink()
        (self.function / 'reset').mkdir()

    def repair_reset(self) -> None:
        (self.function / 'reset').rmdir()
        (self.function / 'reset').touch()

    def log_xid(self, number: int) -> None:
        """Add a line of the vendor driver to the kernel log."""
        self._lines += 1
        moment = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6)
        with (self.root / 'dev/kmsg').open('a') as log:
            text = f'NVRM: Xid (PCI:{_GPU[:-2]}): {number}, pid=7, text'
            log.write(f'3,{self._lines},{moment},-;{text}\n')

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        path = f'/v2/devices/{self.devices()[_GPU]}{path}'
        return self.cloud.api(_OPERATOR).ask(method, path, body)

    # Any: JSON.
    def read_cleanings(self) -> dict[str, Any]:
        listing: dict[str, Any] = expect(self.ask('GET', '/cleanings'), 200)
        return listing

    def wait_for_unit(self, state: str) -> dict[str, Any]:
        """Wait until the unit has a state; return the latest cleaning run."""
        self.cloud.until(
            lambda: self.read_cleanings()['units'][0]['state'] == state,
            f'the unit is {state}',
        )
        self.settle()
        latest: dict[str, Any] = self.read_cleanings()['cleanings'][0]
        return latest

    def wait_for_free(self, number: int) -> None:
        self.cloud.until(lambda: self.providers()[_GPU].free == number, f'{number}')

    def boot(self) -> Instance:
        guest = self.cloud.boot('PGPU')
        self.cloud.until(guest.is_resolved, 'Nova receives the event')
        assert guest.states() == {'Bound'}
        return guest

    def delete(self, guest: Instance) -> None:
        guest.delete()
        self.cloud.until(guest.are_arqs_deleted)


@pytest.fixture
def host(cloud: FaultyCloud, tmp_path: Path) -> Iterator[GpuHost]:
    with GpuHost(cloud, tmp_path) as gpu_host:
        gpu_host.start()
        yield gpu_host


def test_gpu_is_reset_with_proof_between_tenants(host: GpuHost) -> None:
    first = host.boot()
    assert host.ask('POST', '/reset').status == 409
    host.delete(first)
    run = host.wait_for_unit('clean')
    (step,) = run['steps']
    assert step['proof'] == 'flr: same ids, class, BARs, subsystem, link x16'
    assert (host.function / 'reset').read_text() == '1'
    host.wait_for_free(1)

    second = host.boot()
    host.break_reset()
    host.delete(second)
    run = host.wait_for_unit('clean_failed')
    assert 'cannot be reset' in run['reason'] or 'refuses' in run['reason']
    host.repair_reset()
    host.wait_for_free(0)
    expect(host.ask('POST', '/reset', {}), 202)
    assert host.wait_for_unit('clean')['state'] == 'succeeded'
    host.wait_for_free(1)
    host.delete(host.boot())


def test_transient_xid_is_reset_after_use(host: GpuHost) -> None:
    guest = host.boot()
    host.log_xid(119)
    host.cloud.until(lambda: host.health(_GPU)[0] == 'withheld', 'the GPU is withheld')
    assert guest.states() == {'Bound'}
    host.delete(guest)
    host.cloud.until(lambda: host.health(_GPU)[0] == 'ok', 'the GPU is well again')
    host.wait_for_free(1)
    # The same error again on the idle GPU: no reset has helped.
    host.log_xid(119)
    host.wait_for_free(0)
    assert 'again after a reset' in host.health(_GPU)[1]


def test_fatal_xid_withholds_until_operator_clears(host: GpuHost) -> None:
    host.log_xid(79)
    host.wait_for_free(0)
    change = [{'op': 'add', 'path': '/quarantine', 'value': {'name': 'Ada'}}]
    expect(host.ask('PATCH', '', change), 200)
    host.wait_for_free(1)
