# SPDX-License-Identifier: Apache-2.0
"""Tests of parsing the argument fields."""

import pytest

from cyborg_lite.api.call.field_selection import list_fields, parse_fields
from cyborg_lite.api.microversion import MAXIMUM, V2_2, V2_3
from cyborg_lite.api.views.devices import DeviceView
from cyborg_lite.api.views.jobs import JobView, QueuedJobView
from cyborg_lite.errors.base import InvalidInput


def test_list_fields_depends_on_microversion() -> None:
    assert 'status' in list_fields(DeviceView, V2_3)
    assert 'status' not in list_fields(DeviceView, V2_2)


def test_parse_fields_adds_links() -> None:
    fields = parse_fields('uuid, health,,uuid', [DeviceView], MAXIMUM)
    assert fields == {'uuid', 'health', 'links'}


def test_parse_fields_of_several_views() -> None:
    fields = parse_fields('kind,image_uuid', [JobView, QueuedJobView], MAXIMUM)
    assert fields == {'kind', 'image_uuid', 'links'}


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('hostnam', 'Unknown field hostnam. Did you mean hostname?'),
        ('uuid,UUID', 'Unknown field UUID. Valid fields: arqs, arqs_count,'),
        ('', 'fields must name a field'),
        (',', 'fields must name a field'),
        ('%00', 'Unknown field %00'),
    ],
)
def test_parse_fields_invalid_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_fields(text, [DeviceView], MAXIMUM)
    assert message in refusal.value.text
