# SPDX-License-Identifier: Apache-2.0
"""Mediated devices of a module of the kernel: each has the uuid of its handle."""

from typing import Final

from tests.kernel.host import Host
from tests.servers.stack import Instance

_FOREIGN: Final = '11111111-2222-3333-4444-555555555555'


def boot(host: Host) -> tuple[Instance, str]:
    """Bind a mediated device and return its uuid, too."""
    instance = host.cloud.boot('VGPU')
    host.cloud.until(instance.is_resolved)
    [arq] = instance.list_arqs()
    assert arq['state'] == 'Bound'
    return instance, str(arq['attach_handle_uuid'])


def delete(host: Host, instance: Instance) -> None:
    instance.end()


def test_mdev_exists_while_an_instance_has_it(host: Host) -> None:
    instance, uuid = boot(host)
    assert host.list_mdevs() == {uuid}
    host.machine.run(f'mdevctl define --auto --uuid {uuid}')
    delete(host, instance)
    assert host.list_mdevs() == set()
    assert host.machine.run('mdevctl list --defined') == ''


def test_mdev_has_the_same_uuid_after_power_loss(host: Host) -> None:
    instance, uuid = boot(host)
    host.restart_machine()
    assert host.list_mdevs() == {uuid}
    assert instance.states() == {'Bound'}
    delete(host, instance)
    assert host.list_mdevs() == set()


def test_foreign_mdev_is_withheld_and_stays(host: Host) -> None:
    provider = host.cloud.provider_of('VGPU')

    def count_reserved() -> int:
        return host.cloud.inventory(provider)['VGPU'].get('reserved', 0)

    host.create_mdev(_FOREIGN)
    host.cloud.until(lambda: count_reserved() == 1, 'the unit is withheld')
    instance, uuid = boot(host)
    assert host.list_mdevs() == {_FOREIGN, uuid}
    delete(host, instance)
    assert host.list_mdevs() == {_FOREIGN}
    host.remove_mdev(_FOREIGN)
    host.cloud.until(lambda: count_reserved() == 0, 'the unit is offered')


def test_mdev_that_a_guest_has_open_stays(host: Host) -> None:
    instance, uuid = boot(host)
    with host.open_mdev(uuid):
        instance.delete()
        reason = f'mdev {uuid} is open in process'
        host.machine.until(lambda: reason in host.journal(), reason)
        assert host.list_mdevs() == {uuid}
    host.cloud.until(instance.are_arqs_deleted)
    assert host.list_mdevs() == set()


def test_power_loss_during_bind_leaks_no_mdev(host: Host) -> None:
    instance = host.cloud.boot('VGPU')
    host.restart_machine()
    host.cloud.until(instance.is_resolved)
    [arq] = instance.list_arqs()
    mdevs = {str(arq['attach_handle_uuid'])} if arq['state'] == 'Bound' else set()
    assert host.list_mdevs() == mdevs
    delete(host, instance)
    assert host.list_mdevs() == set()
