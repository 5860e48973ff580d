# SPDX-License-Identifier: Apache-2.0
"""Rules of Horizon for the templates of the panels."""

import re
from pathlib import Path

import pytest

import cyborg_lite_dashboard

_FOLDER = Path(cyborg_lite_dashboard.__file__).parent / 'templates'
TEMPLATES = sorted(_FOLDER.rglob('*.html'))


@pytest.mark.parametrize('path', TEMPLATES, ids=lambda path: path.name)
def test_form_has_address(path: Path) -> None:
    """AngularJS, which every page of Horizon loads, sends no other form."""
    forms = re.findall(r'<form\b[^>]*>', path.read_text())
    assert [form for form in forms if ' action=' not in form] == []


@pytest.mark.parametrize('path', TEMPLATES, ids=lambda path: path.name)
def test_form_with_several_buttons_keeps_them_enabled(path: Path) -> None:
    """A script of Horizon disables the pressed button before its value is sent."""
    text = path.read_text()
    if re.search(r'<button[^>]* name=', text):
        assert 'always-enabled' in text
