# SPDX-License-Identifier: Apache-2.0
"""Tests of the generated page of the supported hardware."""

from cyborg_lite.drivers.nvidia import models
from devstack import hardware_catalogue


def test_page_is_up_to_date() -> None:
    current = hardware_catalogue.PAGE.read_text()
    assert current == hardware_catalogue.page(), 'run `tox run -e genhardware`'
    current = hardware_catalogue.HEALTH_PAGE.read_text()
    assert current == hardware_catalogue.health_page(), 'run `tox run -e genhardware`'


def test_page_contains_every_driver_and_model() -> None:
    page = hardware_catalogue.page()
    drivers = hardware_catalogue.load_drivers()
    assert {'fake_driver', 'nvidia_gpu_driver', 'pci_driver'} <= drivers.keys()
    for name, driver in drivers.items():
        assert name == driver.NAME
        assert f'\n{name}\n{"=" * len(name)}\n' in page
    for device, model in models.MODELS.items():
        assert f'``10de:{device}``' in page
        assert model in page


def test_page_names_abilities() -> None:
    page = hardware_catalogue.page()
    section = page.partition('\nxilinx_fpga_driver\n')[2]
    assert 'loads bitstreams' in section
    assert 'loads bitstreams' not in page.partition('\nascend_driver\n')[2][:600]
