# SPDX-License-Identifier: Apache-2.0
"""Virtual functions that the agent creates on a real card."""

from tests.kernel.host import Host
from tests.kernel.machine import SHARED


def test_virtual_functions_exist_while_an_instance_has_one(host: Host) -> None:
    card = host.find_address(SHARED)
    spec = f'{{"address": "{card}", "resource_class": "CUSTOM_FUNCTION"}}'
    host.configure(
        {
            # The driver of drives also claims the card.
            'agent': {'enabled_drivers': 'pci_driver'},
            'pci_driver': {'device_spec': spec, 'virtual_functions': f'{card} = 2'},
        }
    )
    path = f'/sys/bus/pci/devices/{card}/sriov_numvfs'
    # The default of the kernel, which a bind changes.
    host.machine.run(f'echo 1 > /sys/bus/pci/devices/{card}/sriov_drivers_autoprobe')
    try:
        instance = host.cloud.boot('CUSTOM_FUNCTION')
        host.cloud.until(instance.is_resolved)
        [arq] = instance.list_arqs()
        assert arq['state'] == 'Bound'
        assert host.machine.run(f'cat {path}') == '2'
        # The driver of the host never had them.
        log = host.machine.run('dmesg')
        assert f'pci function {card}' in log
        assert f'pci function {card.removesuffix("0")}1' not in log
        instance.delete()
        host.machine.until(lambda: host.machine.run(f'cat {path}') == '0')
    finally:
        host.configure({})
