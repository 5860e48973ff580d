# SPDX-License-Identifier: Apache-2.0
"""Tests of the generated API reference."""

import re
from pathlib import Path

from cyborg_lite.api import openapi
from cyborg_lite.api.openapi.routes import list_rules
from devstack import api_reference


def test_page_is_up_to_date() -> None:
    current = api_reference.PAGE.read_text()
    assert current == api_reference.page(), 'run `tox run -e genapi`'


def test_page_contains_every_route_and_sample() -> None:
    page = api_reference.page()
    for rule in list_rules():
        for operation in getattr(rule, 'operations', ()):
            title = f'{operation["method"]} {operation["path"]}'
            assert f'\n{title}\n{"-" * len(title)}\n' in page
    folder = Path(openapi.__file__).parent / 'samples'
    samples = {file.name for file in folder.glob('*.json')}
    included = re.findall(r'literalinclude:: \S+/samples/(\S+)', page)
    assert sorted(included) == sorted(samples)


def test_page_bind_needs_service_token() -> None:
    page = api_reference.page()
    section = page.partition('\nPATCH /v2/accelerator_requests\n')[2]
    assert 'Requires a service token' in section.partition('Status codes')[0]
