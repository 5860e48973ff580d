# SPDX-License-Identifier: Apache-2.0
"""Tests of the picture of an example host in the documentation."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

from cyborg_lite.rendering.svg import format_svg

ROOT = Path(__file__).parents[3]


def test_example_picture_shows_every_device() -> None:
    path = ROOT / 'doc' / 'source' / '_exts' / 'example_host.py'
    spec = importlib.util.spec_from_file_location('example_host', path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    picture = ElementTree.fromstring(format_svg(module.build_example()))
    text = ''.join(picture.itertext())
    for name in ('NVIDIA A100', 'Tesla T4', 'FPGA PAC D5005', 'QuickAssist 4xxx'):
        assert name in text
