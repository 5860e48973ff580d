# SPDX-License-Identifier: Apache-2.0
"""Sample files in etc/ compared with the code."""

import configparser
import shutil
import subprocess
import tempfile
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path

import pytest
from oslo_config import generator
from oslo_policy import generator as policy_generator

from cyborg_lite.cmd.support import library_defaults
from cyborg_lite.drivers.host import privileged
from devstack import dashboard_policies

ETC = Path(__file__).parents[2] / 'etc'
UNITS = sorted((ETC / 'systemd').glob('*.service'))


def test_sample_configuration_has_all_options(tmp_path: Path) -> None:
    """Options of libraries are left out, because they change with their versions."""
    generated = tmp_path / 'sample'
    namespaces = ['--namespace', 'cyborg_lite', '--namespace', 'cyborg_lite.drivers']
    generator.main([*namespaces, '--wrap-width', '79', '--output-file', str(generated)])
    sample = (ETC / 'cyborg-lite.conf.sample').read_text()
    missing = [
        paragraph
        for paragraph in generated.read_text().split('\n\n')
        if paragraph not in sample
    ]
    assert not missing, 'run `tox run -e genconfig`; not in the sample:\n' + '\n'.join(
        missing
    )


def test_sample_configuration_shows_defaults_of_this_service() -> None:
    library_defaults.set_all()
    text = (ETC / 'cyborg-lite.conf.sample').read_text()
    assert '#control_exchange = cyborg_lite' in text
    assert '#control_exchange = openstack' not in text


def test_sample_policy_equals_generated_policy(tmp_path: Path) -> None:
    generated = tmp_path / 'sample'
    policy_generator.generate_sample(
        ['--namespace', 'cyborg_lite', '--output-file', str(generated)]
    )
    sample = (ETC / 'policy.yaml.sample').read_text()
    assert generated.read_text() == sample, 'run `tox run -e genpolicy`'


def test_policies_of_dashboard_equal_rules() -> None:
    text = dashboard_policies.FILE.read_text()
    assert text == dashboard_policies.format_policies(), 'run `tox run -e genpolicy`'


def read(unit: Path) -> configparser.ConfigParser:
    # systemd accepts an option several times.
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as documented
    parser.read(unit)
    return parser


@pytest.mark.parametrize('unit', UNITS, ids=lambda unit: unit.stem)
def test_unit_starts_shipped_command(unit: Path) -> None:
    shipped = {script.name for script in metadata.entry_points(group='console_scripts')}
    service = read(unit)['Service']
    assert Path(service['ExecStart']).name in shipped
    assert service['Type'] == 'notify'
    assert service['KillMode'] == 'mixed'
    assert service['WatchdogSec'] == '60'
    # [oslo_concurrency] lock_path of the install guide is below it.
    assert service['StateDirectory'] == 'cyborg-lite'


@pytest.mark.parametrize('name', ['api', 'conductor', 'controller'])
def test_unit_has_allocator_settings_of_containers(name: str) -> None:
    service = read(ETC / 'systemd' / f'cyborg-lite-{name}.service')['Service']
    assert 'MALLOC_ARENA_MAX=1' in service['Environment'].split()
    containers = (ETC / 'containers' / 'Dockerfile').read_text().splitlines()
    assert f'ENV {service["Environment"]}' in containers


@pytest.mark.parametrize(
    ('section', 'option', 'value'),
    [
        ('Unit', 'Before', 'nova-compute.service'),
        ('Service', 'RuntimeDirectory', 'cyborg-lite'),
        ('Service', 'RuntimeDirectoryPreserve', 'yes'),
    ],
)
def test_agent_unit_has_option(section: str, option: str, value: str) -> None:
    unit = read(ETC / 'systemd' / 'cyborg-lite-agent.service')
    assert value in unit[section][option].split()


@pytest.mark.skipif(
    shutil.which('systemd-analyze') is None, reason='there is no systemd-analyze here'
)
@pytest.mark.parametrize(
    ('name', 'maximum'),
    [('api', 2.0), ('conductor', 2.0), ('controller', 2.0), ('agent', 7.5)],
)
def test_unit_exposure_is_limited(name: str, maximum: float) -> None:
    unit = ETC / 'systemd' / f'cyborg-lite-{name}.service'
    analysis = subprocess.run(
        ['systemd-analyze', 'security', '--offline=true', '--no-pager', str(unit)],
        capture_output=True,
        check=False,
        text=True,
    )
    (line,) = (item for item in analysis.stdout.splitlines() if 'Overall' in item)
    assert float(line.partition('.service: ')[2].split()[0]) <= maximum


def test_sudoers_allows_one_command_of_agent() -> None:
    rules = (ETC / 'sudoers.d' / 'cyborg-lite').read_text()
    (rule,) = (
        line
        for line in rules.replace('\\\n', '').splitlines()
        if line and not line.startswith('#')
    )
    assert rule.startswith('cyborg-lite ALL = (root) NOPASSWD: /usr/bin/privsep-helper')
    assert privileged.CONTEXT.pypath in rule.split()
    (pattern,) = (word for word in rule.split() if word.endswith('/privsep.sock'))
    with tempfile.TemporaryDirectory(dir='/tmp') as folder:
        assert fnmatchcase(f'{folder}/privsep.sock', pattern)
    # sudo compares all arguments as one text: a blank would begin another one.
    assert not fnmatchcase('/tmp/tmp --key x/privsep.sock', pattern)
    assert not {'*', '?'} & set(rule)


@pytest.mark.skipif(shutil.which('visudo') is None, reason='needs visudo')
def test_sudoers_syntax_is_valid() -> None:
    rules = ETC / 'sudoers.d' / 'cyborg-lite'
    checked = subprocess.run(
        ['visudo', '-c', '-f', str(rules)], capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
