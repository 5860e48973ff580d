# SPDX-License-Identifier: Apache-2.0
"""Tests of the generated pages: API reference, error codes and supported hardware."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.api import openapi
from cyborg_lite.api.openapi.routes import list_rules
from cyborg_lite.drivers.nvidia import models
from devstack import api_reference, error_codes, hardware_catalogue


@pytest.mark.parametrize(
    ('path', 'build', 'environment'),
    [
        (api_reference.PAGE, api_reference.page, 'genapi'),
        (error_codes.PAGE, error_codes.page, 'generrors'),
        (hardware_catalogue.PAGE, hardware_catalogue.page, 'genhardware'),
        (hardware_catalogue.HEALTH_PAGE, hardware_catalogue.health_page, 'genhardware'),
    ],
)
def test_page_is_up_to_date(
    path: Path, build: Callable[[], str], environment: str
) -> None:
    assert path.read_text() == build(), f'run `tox run -e {environment}`'


def test_api_reference_contains_every_route_and_sample() -> None:
    page = api_reference.page()
    for rule in list_rules():
        for operation in getattr(rule, 'operations', ()):
            title = f'{operation["method"]} {operation["path"]}'
            assert f'\n{title}\n{"-" * len(title)}\n' in page
    folder = Path(openapi.__file__).parent / 'samples'
    samples = {file.name for file in folder.glob('*.json')}
    included = re.findall(r'literalinclude:: \S+/samples/(\S+)', page)
    assert sorted(included) == sorted(samples)


def test_catalogue_contains_every_driver_and_model() -> None:
    page = hardware_catalogue.page()
    drivers = hardware_catalogue.load_drivers()
    assert {'fake_driver', 'nvidia_gpu_driver', 'pci_driver'} <= drivers.keys()
    for name, driver in drivers.items():
        assert name == driver.NAME
        assert f'\n{name}\n{"=" * len(name)}\n' in page
    for device, model in models.MODELS.items():
        assert f'``10de:{device}``' in page
        assert model in page
