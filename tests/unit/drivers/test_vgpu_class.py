# SPDX-License-Identifier: Apache-2.0
"""Values of the option for the resource class of vGPUs."""

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.vgpu_class import VGPU_CLASS


@pytest.mark.parametrize('driver', [AmdGpu, IntelGpu, NvidiaGpu])
def test_vgpu_class_is_option_of_gpu_drivers(driver: type[NvidiaGpu]) -> None:
    assert VGPU_CLASS in driver.OPTIONS


@pytest.mark.parametrize('value', ['CUSTOM_CYBORG_VGPU', 'VGPU'])
def test_vgpu_class_valid_value(value: str) -> None:
    assert VGPU_CLASS.type(value) == value


@pytest.mark.parametrize('value', ['PGPU', 'custom_x', 'CUSTOM_', 'CUSTOM_a-b'])
def test_vgpu_class_invalid_value_is_refused(value: str) -> None:
    conf = cfg.ConfigOpts()
    conf.register_opts([VGPU_CLASS])
    conf([], default_config_files=[], default_config_dirs=[])
    with pytest.raises(ValueError, match=r"doesn't match|not"):
        conf.set_override('vgpu_resource_class', value)
