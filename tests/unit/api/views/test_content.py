# SPDX-License-Identifier: Apache-2.0
"""Content of responses without WSME, compared with the classes that describe it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from wsme import types
from wsme.rest.json import fromjson

from cyborg_lite.api.microversion import MAXIMUM
from cyborg_lite.api.views.arqs import ArqList, ArqView
from cyborg_lite.api.views.content import build_content
from cyborg_lite.api.views.devices import DeviceList, DeviceView, UsageView
from cyborg_lite.api.views.link import Link
from cyborg_lite.model.arqs import Arq, State
from cyborg_lite.model.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.usage import Usage
from tests.builders.api_calls import build_call, render

NOW = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
UUID = '11111111-2222-4333-8444-555555555555'
DEVICE = DeviceRecord(
    uuid=UUID,
    type='GPU',
    vendor='10de',
    model='T4',
    hostname='c1',
    std_board_info='{}',
    vendor_board_info=None,
    status=DeviceStatus.ENABLED,
    health=Health.OK,
    health_reason='',
    created_at=NOW,
    usage=Usage(power=5.0, counters={'fatal': 1}),
)
ARQ = Arq(UUID, State.BOUND, 'gpu', 0, {'resources:PGPU': '1'}, NOW)
CALL = build_call(MAXIMUM, is_admin=True)
NEXT = [Link(href='http://api/next', rel='next')]


def list_fields(view: type[Any]) -> set[str]:
    return {attribute.name for attribute in types.list_attributes(view)}


@pytest.mark.parametrize(
    ('view', 'content'),
    [
        (UsageView, UsageView.build(Usage())),
        (DeviceView, DeviceView.build(DEVICE, CALL)),
        (DeviceList, DeviceList.build([DEVICE], CALL, NEXT)),
        (ArqView, ArqView.build(ARQ, CALL)),
        (ArqList, ArqList.build([ARQ], CALL, NEXT)),
    ],
)
def test_content_has_the_fields_of_its_view(view: type[Any], content: Any) -> None:
    assert set(content) == list_fields(view)
    # WSME accepts the content, and renders it without a difference.
    assert render(fromjson(view, render(content))) == render(content)


def test_build_content_omits_unset_fields() -> None:
    content = build_content(a=None, b=types.Unset, c=NOW, d='')
    assert content == {'a': None, 'c': '2026-02-28T23:59:59.123456+00:00', 'd': ''}
