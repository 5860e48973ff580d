# SPDX-License-Identifier: Apache-2.0
"""Tests of options of ``cyborg.conf`` that this service has, and that it lacks."""

from cyborg_lite.cyborg_import.options import convert_options

NAMES = {
    'DEFAULT': {'debug'},
    'api': {'host', 'workers'},
    'agent': {'enabled_drivers', 'discovery_interval'},
}


def test_drivers_get_names_of_this_service() -> None:
    drivers = 'nvidia_gpu_driver, intel_nic_driver,,inspur_nvme_ssd_driver'
    (option,) = convert_options({'agent': {'enabled_drivers': [drivers]}}, NAMES)
    assert option.values == ('nvidia_gpu_driver,sriov_nic_driver,nvme_driver',)


def test_options_keep_order_of_file() -> None:
    sections = {'api': {'host_ip': ['a', 'b']}, 'DEFAULT': {'debug': ['true']}}
    options = convert_options(sections, NAMES)
    assert [option.source for option in options] == [
        ('api', 'host_ip'),
        ('DEFAULT', 'debug'),
    ]
    assert options[0].values == ('a', 'b')
