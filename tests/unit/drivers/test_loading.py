# SPDX-License-Identifier: Apache-2.0
"""Tests of loading drivers by entry point, with their options."""

import tomllib
from collections.abc import Callable
from importlib import resources
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.drivers import loading, pci
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.nvidia.offer import VgpuOffer
from cyborg_lite.drivers.pci.cards import PciCards
from cyborg_lite.errors.daemons import ConfigurationError

_HOST = Host('compute-1')

Parse = Callable[[str], cfg.ConfigOpts]


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    def read(text: str) -> cfg.ConfigOpts:
        file = tmp_path / 'test.conf'
        file.write_text(text)
        conf = cfg.ConfigOpts()
        conf(['--config-file', str(file)])
        return conf

    return read


def test_load_returns_configured_order_without_duplicates(parse: Parse) -> None:
    names = ['nvidia_gpu_driver', 'fake_driver', 'nvidia_gpu_driver']
    drivers = loading.load_drivers(names, _HOST, parse(''))
    assert [(name, type(driver)) for name, driver in drivers.items()] == [
        ('nvidia_gpu_driver', NvidiaGpu),
        ('fake_driver', FakeDriver),
    ]


def test_load_unknown_driver_error_lists_installed(parse: Parse) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loading.load_drivers(['fake_driver', 'nvdia'], _HOST, parse(''))
    assert 'nvdia' in caught.value.text
    assert 'fake_driver, ' in caught.value.text
    assert 'nvidia_gpu_driver' in caught.value.text


def test_load_import_error_raises_configuration_error(
    parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: EntryPoint) -> object:
        raise ImportError('no module named vendor_library')

    monkeypatch.setattr(EntryPoint, 'load', fail)
    with pytest.raises(
        ConfigurationError, match='fake_driver cannot be loaded: no mod'
    ):
        loading.load_drivers(['fake_driver'], _HOST, parse(''))


def test_load_reads_cyborg_sections(parse: Parse) -> None:
    conf = parse(
        '[gpu_devices]\nenabled_vgpu_types = nvidia-35, nvidia-36\n'
        '[vgpu_nvidia-35]\ndevice_addresses = 0000:84:00.0,0000:85:00.0\n'
        '[vgpu_nvidia-36]\ndevice_addresses = 0000:86:00.0\n'
    )
    (driver,) = loading.load_drivers(['nvidia_gpu_driver'], _HOST, conf).values()
    assert isinstance(driver, NvidiaGpu)
    cards = [PciFunction(_HOST, f'0000:{bus}:00.0') for bus in (85, 86, 87)]
    assert isinstance(driver.offer, VgpuOffer)
    assert [driver.offer.find_configured(card) for card in cards] == [
        ('nvidia-35',),
        ('nvidia-36',),
        (),
    ]


def test_load_invalid_rule_raises(parse: Parse) -> None:
    conf = parse('[nvidia_gpu_driver]\nvgpu_types = nvidia-35\n')
    with pytest.raises(ConfigurationError, match='nvidia-35'):
        loading.load_drivers(['nvidia_gpu_driver'], _HOST, conf)


def test_entry_points_match_driver_names() -> None:
    for point in entry_points(group=loading.NAMESPACE):
        assert point.name == point.load().NAME


def test_table_states_class_variables_of_known_drivers() -> None:
    text = (resources.files(pci) / 'drivers.toml').read_text(encoding='utf-8')
    for name, table in tomllib.loads(text).items():
        (point,) = entry_points(group=loading.NAMESPACE, name=name)
        driver = point.load()
        for key, value in table.items():
            stated = tuple(value) if isinstance(value, list) else value
            keys = {*PciCards.__annotations__, *driver.__annotations__, 'OFFERS_WHOLE'}
            assert key.upper() in keys
            assert getattr(driver, key.upper()) == stated
