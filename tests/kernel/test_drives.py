# SPDX-License-Identifier: Apache-2.0
"""NVMe drives: which ones are offered, and that an erase erases."""

import json
import re

from tests.kernel.host import Host
from tests.kernel.machine import DRIVES, SHARED, SYSTEM


def test_drives_that_the_host_uses_are_not_offered(host: Host) -> None:
    text = host.run_program('cyborg-lite-agent discover --format json')
    reasons = {
        host.find_serial(function['address']): function['reason']
        for function in json.loads(text)
        if function['driver'] == 'nvme_driver'
    }
    for serial, reason in (
        (SYSTEM, r'/ is mounted from nvme\d+n1'),
        ('LVM', r'system-data on nvme\d+n1'),
        ('RAID', r'md\d+ on nvme\d+n1'),
        ('CRYPT', r'system-crypt on nvme\d+n1'),
        ('MOUNTED', r'/srv/data is mounted from nvme\d+n1p1'),
    ):
        assert re.search(f'in use by the host: {reason}', reasons.pop(serial))
    assert set(reasons) == {'FREE', SHARED}
    free = {host.find_provider('FREE'), host.find_provider(SHARED)}
    providers = {provider['uuid'] for provider in host.cloud.providers().values()}
    assert {
        uuid for uuid in providers if 'CUSTOM_SSD' in host.cloud.inventory(uuid)
    } == free


def test_released_drive_is_erased(host: Host) -> None:
    host.write_data('FREE')
    instance = host.boot('FREE')
    [arq] = instance.list_arqs()
    assert arq['state'] == 'Bound'
    host.attach('FREE')
    instance.delete()
    host.detach('FREE')
    host.machine.until(lambda: host.is_erased('FREE'), 'the drive is erased')
    host.cloud.until(instance.has_candidate)


def test_power_loss_during_an_erase_leaves_nothing(host: Host) -> None:
    host.write_data('FREE')
    instance = host.boot('FREE')
    instance.delete()
    host.machine.power_off_and_on()
    host.use_drives(has_data=True)
    assert host.machine.run('ls /srv/data') == ''
    host.start_agent()
    host.machine.until(lambda: host.is_erased('FREE'), 'the drive is erased')
    host.cloud.until(instance.has_candidate)


def test_power_loss_keeps_a_bound_drive(host: Host) -> None:
    host.write_data('FREE')
    instance = host.boot('FREE')
    host.restart_machine()
    host.cloud.until(lambda: instance.states() == {'Bound'})
    assert not host.is_erased('FREE')
    instance.delete()
    host.machine.until(lambda: host.is_erased('FREE'), 'the drive is erased')
    host.cloud.until(instance.has_candidate)


def test_unplugged_drive_is_withheld_until_it_is_back(host: Host) -> None:
    provider = host.find_provider('FREE')

    def is_offered() -> bool:
        inventory = host.cloud.inventory(provider).get('CUSTOM_SSD', {'total': 0})
        return inventory['total'] > inventory.get('reserved', 0)

    assert is_offered()
    port = DRIVES.index('FREE') + 1
    host.machine.monitor('device_del nvme-FREE')
    host.cloud.until(lambda: not is_offered(), 'the drive is withheld')
    host.machine.monitor(
        f'device_add nvme,id=nvme-FREE,bus=port{port},serial=FREE,drive=FREE'
    )
    host.cloud.until(is_offered, 'the drive is offered again')
