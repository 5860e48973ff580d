# SPDX-License-Identifier: Apache-2.0
"""What lies in etc/ fits the code."""

import configparser
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

import pytest
from oslo_config import generator
from oslo_policy import generator as policy_generator

from cyborg_lite.drivers import privileged

ETC = Path(__file__).parents[2] / 'etc'
UNITS = sorted((ETC / 'systemd').glob('*.service'))


def test_the_sample_configuration_has_every_option_as_it_is(tmp_path: Path) -> None:
    """Ours: those of the libraries change with their versions."""
    made = tmp_path / 'sample'
    ours = ['--namespace', 'cyborg_lite', '--namespace', 'cyborg_lite.drivers']
    generator.main([*ours, '--wrap-width', '79', '--output-file', str(made)])
    sample = (ETC / 'cyborg-lite.conf.sample').read_text()
    missing = [part for part in made.read_text().split('\n\n') if part not in sample]
    assert not missing, 'run `tox run -e genconfig`; not in the sample:\n' + '\n'.join(
        missing
    )


def test_the_sample_policy_is_the_generated_one(tmp_path: Path) -> None:
    made = tmp_path / 'sample'
    policy_generator.generate_sample(
        ['--namespace', 'cyborg_lite', '--output-file', str(made)]
    )
    sample = (ETC / 'policy.yaml.sample').read_text()
    assert made.read_text() == sample, 'run `tox run -e genpolicy`'


def read(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as documented
    parser.read(unit)
    return parser


@pytest.mark.parametrize('unit', UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_a_command_that_we_ship(unit: Path) -> None:
    shipped = {script.name for script in metadata.entry_points(group='console_scripts')}
    service = read(unit)['Service']
    assert Path(service['ExecStart']).name in shipped
    assert service['Type'] == 'notify'
    assert service['KillMode'] == 'mixed'


def test_every_daemon_has_a_unit() -> None:
    assert {unit.stem for unit in UNITS} == {
        'cyborg-lite-api',
        'cyborg-lite-conductor',
        'cyborg-lite-agent',
    }


def test_the_agent_is_ready_before_nova_resumes_guests() -> None:
    unit = read(ETC / 'systemd' / 'cyborg-lite-agent.service')['Unit']
    assert 'nova-compute.service' in unit['Before'].split()


def test_what_the_agent_made_since_the_boot_outlives_a_restart() -> None:
    service = read(ETC / 'systemd' / 'cyborg-lite-agent.service')['Service']
    assert service['RuntimeDirectory'] == 'cyborg-lite'
    assert service['RuntimeDirectoryPreserve'] == 'yes'


def test_sudo_allows_the_agent_one_command_of_one_context() -> None:
    rules = (ETC / 'sudoers.d' / 'cyborg-lite').read_text()
    (rule,) = (
        line
        for line in rules.replace('\\\n', '').splitlines()
        if line and not line.startswith('#')
    )
    assert rule.startswith('cyborg-lite ALL = (root) NOPASSWD: /usr/bin/privsep-helper')
    assert privileged.CONTEXT.pypath in rule.split()
    assert '*' not in rule
    (socket,) = (word for word in rule.split() if word.endswith('/privsep.sock'))
    with tempfile.TemporaryDirectory() as made:
        assert len(f'{made}/privsep.sock') == len(socket)


@pytest.mark.skipif(shutil.which('visudo') is None, reason='there is no sudo here')
def test_sudo_understands_its_rule() -> None:
    rules = ETC / 'sudoers.d' / 'cyborg-lite'
    checked = subprocess.run(
        ['visudo', '-c', '-f', str(rules)], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
