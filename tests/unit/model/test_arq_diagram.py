# SPDX-License-Identifier: Apache-2.0
"""Tests of the state diagram in the documentation against the transition table."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Final
from xml.etree import ElementTree

import pytest

from cyborg_lite.model.arqs.arqs import TRANSITIONS, Event

_SOURCE: Final = Path(__file__).parents[3] / 'doc/source/_exts/state_diagram.py'
_SVG: Final = '{http://www.w3.org/2000/svg}'


@pytest.fixture(scope='module')
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location('state_diagram', _SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_svg_draws_one_arrow_per_transition(drawing: ModuleType) -> None:
    picture = ElementTree.fromstring(drawing.svg(TRANSITIONS))
    arrows = set()
    for title in picture.iter(f'{_SVG}title'):
        start, events, end = (title.text or '').split(': ')
        arrows |= {(start, event, end) for event in events.split(', ')}
    assert arrows == {
        (state, event, following)
        for state, row in TRANSITIONS.items()
        for event, following in row.items()
        if following is not state
    }


def test_svg_state_lists_events_without_transition(drawing: ModuleType) -> None:
    picture = ElementTree.fromstring(drawing.svg(TRANSITIONS))
    texts = [text.text for text in picture.iter(f'{_SVG}text')]
    for state, row in TRANSITIONS.items():
        stays = [event for event, following in row.items() if following is state]
        after = texts[texts.index(state) + 1 :][:1]
        assert (after == [f'\u21bb {", ".join(stays)}']) is bool(stays)


def test_table_has_cell_for_each_state_and_event(drawing: ModuleType) -> None:
    header, *rows = drawing.table(TRANSITIONS)
    cells = {
        (row[0], event): cell
        for row in rows
        for event, cell in zip(header[1:], row[1:], strict=True)
    }
    assert cells == {
        (state, event): TRANSITIONS[state].get(event, '')
        for state in TRANSITIONS
        for event in Event
    }
