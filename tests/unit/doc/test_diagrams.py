# SPDX-License-Identifier: Apache-2.0
"""Tests of the pictures that the documentation draws."""

from xml.etree import ElementTree

import pytest

from cyborg_lite.rendering.svg import format_svg
from tests.unit.doc.extensions import load


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


def test_example_picture_shows_every_device() -> None:
    picture = format_svg(load('example_host').build_example())
    text = ''.join(ElementTree.fromstring(picture).itertext())
    for name in ('NVIDIA A100', 'Tesla T4', 'FPGA PAC D5005', 'QuickAssist 4xxx'):
        assert name in text
