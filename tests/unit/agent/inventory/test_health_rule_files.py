# SPDX-License-Identifier: Apache-2.0
"""Files of an operator that change the health rules."""

from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.health_rule_files import load_rules
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.health_rules import Action

_RULE = 'signal: own, action: note, severity: info, source: us'


def test_later_file_changes_adds_and_removes_rules(tmp_path: Path) -> None:
    shipped = load_rules().rules
    (tmp_path / '1.yaml').write_text(
        f'rules: {{xid-74: {{action: note}}, own: {{{_RULE}, text: one}}}}'
    )
    (tmp_path / '2.yaml').write_text('rules: {xid-48: null, own: {text: two}}')
    rules = load_rules(tmp_path).rules
    assert rules.keys() == shipped.keys() - {'xid-48'} | {'own'}
    assert rules['own'].text == 'two'
    assert (rules['xid-74'].action, shipped['xid-74'].action) == (
        Action.NOTE,
        Action.WITHHOLD,
    )
    assert rules['xid-74'].text == shipped['xid-74'].text


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('rules: [', 'no YAML'),
        ('rules: [xid-48]', 'only have the sections'),
        ('rule: {}', 'only have the sections'),
        ('rules: {xid-48: {colour: red}}', 'xid-48: unknown colour'),
        ('rules: {xid-48: {action: ignore}}', 'xid-48'),
        ('rules: {xid-48: {threshold: 0}}', 'threshold must be at least 1'),
        ('rules: {xid-48: {window: 1}}', 'window must be'),
        ('rules: {own: {signal: own}}', 'own'),
        ('lines: {own: {pattern: "[", signal: own}}', 'no regular expression'),
        ('lines: {own: {pattern: "x", signal: own}}', 'no group "address"'),
        (
            'lines: {own: {pattern: "(?P<address>x)", signal: "{n}"}}',
            'names a group',
        ),
    ],
)
def test_invalid_file_is_named_at_start(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / 'own.yaml').write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        load_rules(tmp_path)
    assert reason in raised.value.text
