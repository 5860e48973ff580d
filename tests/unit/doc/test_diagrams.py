# SPDX-License-Identifier: Apache-2.0
"""Tests of the pictures that the documentation draws from text."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final
from xml.etree import ElementTree

import pytest

_FOLDER: Final = Path(__file__).parents[3] / 'doc/source/_exts'


def load(name: str) -> ModuleType:
    """Import a module of the Sphinx extensions, which is not in a package."""
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f'{name}.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look up their module there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module


def texts(picture: str) -> list[str]:
    """Return the visible texts of an SVG picture."""
    root = ElementTree.fromstring(picture)
    return [node.text or '' for node in root.iter('{http://www.w3.org/2000/svg}text')]


def test_component_diagram_has_boxes_and_arrows() -> None:
    lines = ['a (0, 0): API & web', '', 'b (1, 2): agent', 'a -> b: RPC <call>']
    picture = load('component_svg').draw_components(lines, 'A "title"')
    assert sorted(texts(picture)) == ['API & web', 'RPC <call>', 'agent']


def test_component_diagram_bar_starts_second_line() -> None:
    lines = ['a (0, 0): API | on controllers', 'b (0, 1): agent', 'a -> b']
    picture = load('component_svg').draw_components(lines, '')
    assert texts(picture) == ['API', 'on controllers', 'agent']


@pytest.mark.parametrize('line', ['a -> b: RPC', 'a: text', 'a (x, 0): text'])
def test_component_diagram_invalid_line_raises(line: str) -> None:
    with pytest.raises(ValueError, match=r'arrow|box'):
        load('component_svg').draw_components(['a (0, 0): API', line], '')


def test_sequence_diagram_has_participants_and_messages() -> None:
    lines = ['Nova -> API: PATCH', 'API -> API: check', 'API --> Nova: 202']
    picture = load('sequence_svg').draw_sequence(lines, 'A bind')
    assert texts(picture) == ['Nova', 'API', 'PATCH', 'check', '202']
    assert picture.count('stroke-dasharray') == 1


def test_sequence_diagram_invalid_line_raises() -> None:
    with pytest.raises(ValueError, match='Not a message'):
        load('sequence_svg').draw_sequence(['Nova: PATCH'], '')
