# SPDX-License-Identifier: Apache-2.0
"""Comparison of the ownership file with the configuration of Nova."""

import pytest

from cyborg_lite.model.ownership.nova_config import check_nova_config, parse_nova_config
from cyborg_lite.model.ownership.plan import NOVA_FILE, build_config, parse_plan

HOST = 'compute-1'
WHOLE, DIVIDED, OWN, UNUSED = (f'0000:{bus}:00.0' for bus in ('01', '3b', 'af', 'd8'))
PLAN = parse_plan(
    {
        HOST: {
            WHOLE: 'nova',
            DIVIDED: {
                'owner': 'nova',
                'vgpu_type': 'nvidia-222',
                'resource_class': 'CUSTOM_NOVA_VGPU',
            },
            OWN: {'owner': 'cyborg', 'vgpu_type': 'nvidia-231'},
            UNUSED: 'nobody',
            '10de:2235': 'nova',
            '10de:1eb8': 'nobody',
            '*': 'cyborg',
        }
    }
)
CLASS_LINE = 'mdev_class = CUSTOM_NOVA_VGPU'


def generate() -> str:
    """Return the nova.conf that the plan generates."""
    sections: dict[str, list[str]] = {}
    for line in build_config(PLAN.list_rules(HOST)):
        if line.file == NOVA_FILE:
            sections.setdefault(line.section, []).append(line.text)
    return '\n'.join(
        '\n'.join([f'[{section}]', *texts]) for section, texts in sections.items()
    )


def check(text: str) -> list[tuple[str, str]]:
    """Return card and reason of each difference."""
    problems = check_nova_config(PLAN, HOST, parse_nova_config([text]))
    return [(problem.address, problem.reason) for problem in problems]


def test_check_generated_configuration_has_no_difference() -> None:
    assert CLASS_LINE in generate()
    assert check(generate()) == []


def test_check_empty_configuration_lacks_cards_of_nova() -> None:
    assert [card for card, _ in check('')] == [WHOLE, DIVIDED, '10de:2235']


@pytest.mark.parametrize(
    ('old', 'new', 'card', 'reason'),
    [
        (f'"{WHOLE}"', '"0000:02:00.0"', WHOLE, 'No [pci] device_spec'),
        ('"2235"', '"2236"', '10de:2235', 'No [pci] device_spec'),
        ('= nvidia-222', '= nvidia-223', DIVIDED, 'Nova does not create vGPUs of type'),
        (CLASS_LINE, '', DIVIDED, 'mdev_class of Nova is VGPU and not CUSTOM_NOVA'),
        (f'= {DIVIDED}', f'= {DIVIDED}, {OWN}', OWN, 'contains [devices] enabled_mdev'),
        ('"2235"}', f'"2235"}}\ndevice_spec = {{"address": "{OWN}"}}', OWN, OWN),
        ('"2235"}', f'"2235"}}\ndevice_spec = {{"address": "{UNUSED}"}}', UNUSED, '['),
        (
            '"2235"}',
            '"2235"}\ndevice_spec = {"vendor_id": "10de", "product_id": "1eb8"}',
            '10de:1eb8',
            'The configuration of Nova contains [pci] device_spec',
        ),
        ('"2235"}', '"2235"}\ndevice_spec = {oops', '', 'invalid entry: [pci]'),
    ],
)
def test_check_changed_configuration_names_the_card(
    old: str, new: str, card: str, reason: str
) -> None:
    text = generate()
    assert old in text
    ((actual_card, actual_reason),) = check(text.replace(old, new))
    assert actual_card == card
    assert reason in actual_reason


def test_check_other_host_has_no_rules() -> None:
    assert check_nova_config(PLAN, 'compute-2', parse_nova_config([''])) == ()
