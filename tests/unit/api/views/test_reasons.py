# SPDX-License-Identifier: Apache-2.0
"""Tests of reasons in responses."""

import pytest

from cyborg_lite.api.views.reasons import render_reason

UUID = '5c9a477a-d3d4-426a-9e9c-b2660917780e'


@pytest.mark.parametrize(
    ('shows_uuids', 'text'),
    [(True, f'{UUID}, {UUID} in use'), (False, '(hidden), (hidden) in use')],
)
def test_reason_shows_uuids_to_administrators(shows_uuids: bool, text: str) -> None:
    assert render_reason(f'{UUID}, {UUID} in use', shows_uuids=shows_uuids) == text


def test_reason_empty_stays_empty() -> None:
    assert render_reason('', shows_uuids=False) == ''
