# SPDX-License-Identifier: Apache-2.0
"""Tests of the version documents."""

from cyborg_lite.api.microversion import MAXIMUM, MINIMUM
from cyborg_lite.api.views.versions import RootView, VersionView
from tests.builders.api_calls import LINKS, render


def test_bare_version_has_five_keys() -> None:
    assert render(VersionView.build_bare(LINKS)) == {
        'id': 'v2.0',
        'links': [{'href': 'http://api/v2/', 'rel': 'self'}],
        'max_version': str(MAXIMUM),
        'min_version': str(MINIMUM),
        'status': 'CURRENT',
    }


def test_root_lists_version_as_default() -> None:
    body = render(RootView.build(LINKS))
    assert body['name'] == 'OpenStack Cyborg API'
    assert body['versions'] == [body['default_version']]
    assert body['default_version']['id'] == 'v2'
    assert body['default_version']['links'][0]['href'] == 'http://api/v2'
