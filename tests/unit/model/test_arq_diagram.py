# SPDX-License-Identifier: Apache-2.0
"""The picture in the documentation shows the table of states, and all of it."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Final
from xml.etree import ElementTree

import pytest

from cyborg_lite.model.arqs import TRANSITIONS, Event, State

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


def test_there_is_an_arrow_for_each_change_of_state(drawing: ModuleType) -> None:
    picture = ElementTree.fromstring(drawing.svg(TRANSITIONS))
    shown = set()
    for title in picture.iter(f'{_SVG}title'):
        start, events, end = (title.text or '').split(': ')
        shown |= {(start, event, end) for event in events.split(', ')}
    assert shown == {
        (state, event, following)
        for state, row in TRANSITIONS.items()
        for event, following in row.items()
        if following is not state
    }


def test_a_state_says_what_leaves_it_as_it_is(drawing: ModuleType) -> None:
    picture = ElementTree.fromstring(drawing.svg(TRANSITIONS))
    texts = [text.text for text in picture.iter(f'{_SVG}text')]
    for state, row in TRANSITIONS.items():
        stays = [event for event, following in row.items() if following is state]
        after = texts[texts.index(state) + 1 :][:1]
        assert (after == [f'\u21bb {", ".join(stays)}']) is bool(stays)


def test_a_state_without_a_place_is_not_left_out(drawing: ModuleType) -> None:
    odd = {State.UNKNOWN: {Event.DELETE: State.DELETING}}
    with pytest.raises(KeyError):
        drawing.svg({**TRANSITIONS, **odd})


def test_no_box_stands_on_another(drawing: ModuleType) -> None:
    places = list(drawing.PLACES.values())
    assert len(set(places)) == len(places) == len(TRANSITIONS)


def test_the_table_has_a_cell_for_each_state_and_event(drawing: ModuleType) -> None:
    head, *rows = drawing.table(TRANSITIONS)
    cells = {
        (row[0], event): cell
        for row in rows
        for event, cell in zip(head[1:], row[1:], strict=True)
    }
    assert cells == {
        (state, event): TRANSITIONS[state].get(event, '')
        for state in TRANSITIONS
        for event in Event
    }
