# SPDX-License-Identifier: Apache-2.0
"""Tests of bitstreams in responses."""

from cyborg_lite.api.views.bitstreams import BitstreamList
from cyborg_lite.model.bitstreams.listing import ListedBitstream
from tests.builders.api_calls import render

UUID = '5c9a477a-d3d4-426a-9e9c-b2660917780e'


def build_body(**fields: object) -> dict[str, object]:
    bitstream = ListedBitstream(
        **{  # type: ignore[arg-type]  # fields of several types
            'image_uuid': UUID,
            'image_name': 'nlb',
            'size': 10,
            'properties': {},
            'reasons': (),
            **fields,
        }
    )
    (body,) = render(BitstreamList([bitstream]))['bitstreams']
    assert isinstance(body, dict)
    return body


def test_bitstream_view_maps_image_properties_to_fields() -> None:
    body = build_body(
        properties={'bs-name': 'nlb-0', 'bs-uuid': 'ab', 'vendor': '8086'}
    )
    assert (body['name'], body['uuid'], body['vendor']) == ('nlb-0', 'ab', '8086')
    assert (body['image_name'], body['size']) == ('nlb', 10)


def test_bitstream_view_missing_property_is_null() -> None:
    body = build_body()
    assert body['function_uuid'] is None
    assert body['shell_id'] is None


def test_bitstream_view_with_reasons_is_not_accepted() -> None:
    assert build_body()['accepted'] is True
    body = build_body(reasons=('It is empty.',))
    assert body['accepted'] is False
    assert body['reasons'] == ['It is empty.']
