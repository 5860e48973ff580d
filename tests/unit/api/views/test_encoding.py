# SPDX-License-Identifier: Apache-2.0
"""Tests of encoders: what each type of field shows."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

import pytest
from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_3, V2_4
from cyborg_lite.api.views.encoding import encode
from cyborg_lite.api.views.shapes import (
    REASON,
    REASON_OR_NULL,
    TEXT_OR_NULL,
    nullable,
    optional,
    since,
    source,
)
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, ListView, View
from tests.builders.api_calls import build_call, render

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
UUID: Final = '5c9a477a-d3d4-426a-9e9c-b2660917780e'


class PartView(View):
    """A part with the kind in the place of its type."""

    kind = source('type.name', str)
    made_at = nullable(datetime)


class RackView(View):
    """A rack."""

    _path = 'v2/racks/{uuid}/state'

    links = LINKS
    uuid = str
    parts = [PartView]
    first = nullable(PartView)
    times = {str: datetime}
    names = since(V2_4, [str])
    size = int
    secret = optional([str])

    @staticmethod
    def render_size(rack: Any, call: Call) -> int:
        """Return the number of parts."""
        return len(rack.parts)

    @staticmethod
    def render_secret(rack: Any, call: Call) -> Any:
        """Return the names to administrators."""
        return rack.names if call.caller.is_admin else types.Unset


class RackList(ListView):
    """A page of racks."""

    racks = [RackView]
    racks_links = NEXT_LINKS


PART: Final = SimpleNamespace(type=SimpleNamespace(name='disk'), made_at=None)
RACK: Final = SimpleNamespace(
    uuid=UUID, parts=(PART,), first=None, times={'made': NOW}, names=('a',)
)
LINK: Final = {'href': f'http://api/v2/racks/{UUID}/state', 'rel': 'self'}
OLDER: Final = {
    'links': [LINK],
    'uuid': UUID,
    'parts': [{'kind': 'disk', 'made_at': None}],
    'first': None,
    'times': {'made': '2026-11-21T00:00:00+00:00'},
    'size': 1,
}


def test_encode_shows_fields_in_their_order() -> None:
    body = render(RackView(RACK), V2_3)
    assert list(body.items()) == list(OLDER.items())


def test_encode_shows_newer_fields_since_their_microversion() -> None:
    body = render(RackView(RACK), V2_4)
    assert list(body) == ['links', 'uuid', 'parts', 'first', 'times', 'names', 'size']
    assert body['names'] == ['a']


def test_encode_omits_only_unset_fields() -> None:
    assert render(RackView(RACK), V2_3, is_admin=True)['secret'] == ['a']
    assert 'secret' not in render(RackView(RACK), V2_3)


@pytest.mark.parametrize(
    ('links', 'expected'),
    [(types.Unset, {}), ([LINK], {'racks_links': [LINK]})],
)
def test_list_view_has_link_to_next_page(links: Any, expected: Any) -> None:
    assert render(RackList([RACK], links), V2_3)['racks'] == [OLDER]
    assert render(RackList([], links), V2_4) == {'racks': [], **expected}


def test_encode_selects_fields_of_selectable_views_only() -> None:
    call = build_call(V2_4)
    call.fields, call.selectable = frozenset({'links', 'parts'}), (RackView,)
    (rack,) = encode(RackList([RACK]), call)['racks']
    assert rack == {'links': [LINK], 'parts': [{'kind': 'disk', 'made_at': None}]}


class TextView(View):
    """Texts of several types."""

    text = TEXT_OR_NULL
    status = REASON
    reason = REASON_OR_NULL


@pytest.mark.parametrize(
    ('is_admin', 'reason'), [(True, f'{UUID} fails'), (False, '(hidden) fails')]
)
def test_encode_shows_uuids_in_reasons_to_administrators(
    is_admin: bool, reason: str
) -> None:
    text = f'{UUID} fails'
    view = TextView(text=text, status=text, reason=text)
    assert render(view, is_admin=is_admin) == {
        'text': text,
        'status': reason,
        'reason': reason,
    }


def test_encode_shows_empty_texts_as_their_type_says() -> None:
    view = TextView(text='', status='', reason='')
    assert render(view) == {'text': None, 'status': '', 'reason': None}
