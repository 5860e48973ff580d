# SPDX-License-Identifier: Apache-2.0
"""Tests of attributes in responses."""

from datetime import UTC, datetime

from wsme import types

from cyborg_lite.api.microversion import V2_4, V2_21
from cyborg_lite.api.views.attributes import AttributeList, AttributeView
from cyborg_lite.api.views.link import Link
from cyborg_lite.model.devices import Attribute
from tests.builders.api_calls import build_call, render

ATTRIBUTE = Attribute(
    uuid='5c9a477a-d3d4-426a-9e9c-b2660917780e',
    deployable_id=7,
    key='traits1',
    value='CUSTOM_A',
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
)


def test_attribute_view_shows_stored_values() -> None:
    assert render(AttributeView.build(ATTRIBUTE, build_call())) == {
        'uuid': ATTRIBUTE.uuid,
        'deployable_id': 7,
        'key': 'traits1',
        'value': 'CUSTOM_A',
        'links': [
            {'href': f'http://api/v2/attributes/{ATTRIBUTE.uuid}', 'rel': 'self'}
        ],
        'created_at': '2026-11-21T00:00:00+00:00',
        'updated_at': None,
    }


def test_attribute_list_last_page_has_no_next_link() -> None:
    body = render(AttributeList.build([ATTRIBUTE], build_call(), types.Unset))
    assert body.keys() == {'attributes'}
    assert len(body['attributes']) == 1


def test_attribute_list_shows_next_link() -> None:
    following = [Link(href='http://api/next', rel='next')]
    body = render(AttributeList.build([], build_call(V2_4), following))
    assert body == {
        'attributes': [],
        'attributes_links': [{'href': 'http://api/next', 'rel': 'next'}],
    }


def test_attribute_view_has_generation_since_2_21() -> None:
    view = AttributeView.build(ATTRIBUTE, build_call(V2_21))
    assert render(view)['generation'] == 0
