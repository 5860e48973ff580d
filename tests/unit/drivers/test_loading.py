# SPDX-License-Identifier: Apache-2.0
"""Drivers are found by name, and mistakes in their names are told."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.drivers import loading
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ConfigurationError

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


def test_drivers_come_in_the_order_given_each_once(parse: Parse) -> None:
    names = ['nvidia_gpu_driver', 'fake_driver', 'nvidia_gpu_driver']
    drivers = loading.load(names, _HOST, parse(''))
    assert [(name, type(each)) for name, each in drivers.items()] == [
        ('nvidia_gpu_driver', NvidiaGpu),
        ('fake_driver', FakeDriver),
    ]


def test_no_driver_is_a_choice_too(parse: Parse) -> None:
    assert loading.load([], _HOST, parse('')) == {}


def test_an_unknown_name_is_told_with_those_that_exist(parse: Parse) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loading.load(['fake_driver', 'nvdia'], _HOST, parse(''))
    assert 'nvdia' in caught.value.text
    assert 'fake_driver, ' in caught.value.text
    assert 'nvidia_gpu_driver' in caught.value.text


def test_a_driver_that_cannot_be_imported_is_told(
    parse: Parse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: EntryPoint) -> object:
        raise ImportError('no module named vendor_library')

    monkeypatch.setattr(EntryPoint, 'load', fail)
    with pytest.raises(
        ConfigurationError, match='fake_driver cannot be loaded: no mod'
    ):
        loading.load(['fake_driver'], _HOST, parse(''))


def test_a_driver_reads_the_section_of_its_name(parse: Parse, tmp_path: Path) -> None:
    conf = parse('[nvidia_gpu_driver]\noffer_without_reset = true\n')
    loading.load(['nvidia_gpu_driver'], _HOST, conf)
    assert conf.nvidia_gpu_driver.offer_without_reset is True


def test_a_value_that_cannot_be_is_told_before_the_work_begins(parse: Parse) -> None:
    conf = parse('[nvidia_gpu_driver]\noffer_without_reset = perhaps\n')
    with pytest.raises(ConfigurationError, match='perhaps'):
        loading.load(['nvidia_gpu_driver'], _HOST, conf)


def test_sections_of_cyborg_are_heard(parse: Parse) -> None:
    conf = parse(
        '[gpu_devices]\nenabled_vgpu_types = nvidia-35, nvidia-36\n'
        '[vgpu_nvidia-35]\ndevice_addresses = 0000:84:00.0,0000:85:00.0\n'
        '[vgpu_nvidia-36]\ndevice_addresses = 0000:86:00.0\n'
    )
    (driver,) = loading.load(['nvidia_gpu_driver'], _HOST, conf).values()
    assert isinstance(driver, NvidiaGpu)
    assert [driver.wanted_types(f'0000:{bus}:00.0') for bus in (85, 86, 87)] == [
        ('nvidia-35',),
        ('nvidia-36',),
        (),
    ]


def test_sections_of_cyborg_that_contradict_one_another_are_told(parse: Parse) -> None:
    conf = parse(
        '[gpu_devices]\nenabled_vgpu_types = nvidia-35, nvidia-36\n'
        '[vgpu_nvidia-35]\ndevice_addresses = 0000:84:00.0\n'
        '[vgpu_nvidia-36]\ndevice_addresses = 0000:84:00.0\n'
    )
    with pytest.raises(ConfigurationError, match=r'vgpu_nvidia-36.*0000:84:00.0'):
        loading.load(['nvidia_gpu_driver'], _HOST, conf)


def test_a_rule_that_is_none_is_told(parse: Parse) -> None:
    conf = parse('[nvidia_gpu_driver]\nvgpu_types = nvidia-35\n')
    with pytest.raises(ConfigurationError, match='nvidia-35'):
        loading.load(['nvidia_gpu_driver'], _HOST, conf)


def test_the_sample_configuration_has_the_options_of_all_drivers() -> None:
    options = dict(loading.list_opts())
    assert [each.name for each in options['nvidia_gpu_driver']] == [
        'offer_without_reset',
        'vgpu_types',
        'change_timeout',
    ]
    assert 'fake_driver' not in options


def test_every_driver_bears_the_name_of_its_entry_point() -> None:
    for point in entry_points(group=loading.NAMESPACE):
        assert point.name == point.load().NAME
