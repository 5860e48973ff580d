# SPDX-License-Identifier: Apache-2.0
"""The API reference is the generated one, and leaves nothing out."""

import re

from cyborg_lite import policies
from devstack import api_reference


def test_the_page_is_the_generated_one() -> None:
    written = api_reference.PAGE.read_text()
    assert written == api_reference.page(), 'run `tox run -e genapi`'


def test_every_route_of_a_rule_has_a_section_and_every_sample_is_shown() -> None:
    page = api_reference.page()
    for rule in policies.list_rules():
        for operation in getattr(rule, 'operations', ()):
            title = f'{operation["method"]} {operation["path"]}'
            assert f'\n{title}\n{"-" * len(title)}\n' in page
    samples = {file.name for file in (api_reference.PAGE.parents[1]).glob('*/*.json')}
    shown = re.findall(r'literalinclude:: \.\./api-samples/(\S+)', page)
    assert sorted(shown) == sorted(samples)


def test_a_bind_is_said_to_need_a_service() -> None:
    page = api_reference.page()
    section = page.partition('\nPATCH /v2/accelerator_requests\n')[2]
    assert 'Needs a service token' in section.partition('Answers')[0]
