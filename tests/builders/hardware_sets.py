# SPDX-License-Identifier: Apache-2.0
"""A hardware set for the fake FPGA, whose playbooks write files on this machine."""

import json
import sys
from pathlib import Path
from typing import Final

import yaml

_TEARDOWN: Final = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Remove the options
      ansible.builtin.shell: echo teardown >> {{ root }}/runs
"""
_SETUP: Final = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Write the options
      ansible.builtin.shell: >-
        test ! -e {{ root }}/refused && echo set up {{ count }} >> {{ root }}/runs
    - name: Load the driver
      ansible.builtin.shell: >-
        echo $$ > {{ root }}/pid;
        until test -e {{ root }}/loaded; do sleep 0.1; done
"""


def write_hardware_set(root: Path, host: str) -> Path:
    """Write a file with the set ``boards`` and its playbooks into a new directory.

    The set-up waits for a file ``loaded`` in the directory, and fails while there is a
    file ``refused``. Each playbook adds a line to the file ``runs``.

    :param host: name of the host of the FPGA
    :returns: the path for ``[conductor] hardware_sets``
    """
    root.mkdir()
    (root / 'runs').touch()
    variables = {
        'ansible_connection': 'local',
        'ansible_python_interpreter': sys.executable,
        'root': str(root),
    }
    inventory = {'all': {'hosts': {host: variables}}}
    (root / 'hosts.json').write_text(json.dumps(inventory))
    (root / 'setup.yml').write_text(_SETUP)
    (root / 'teardown.yml').write_text(_TEARDOWN)
    hardware_set = {
        'setup': 'setup.yml',
        'teardown': 'teardown.yml',
        'devices': {'type': ['FPGA'], 'model': ['FakeDevice']},
        'settings': {'count': {'type': 'integer', 'maximum': 8}},
        'required': ['count'],
    }
    sets = {
        'directory': str(root),
        'inventory': 'hosts.json',
        'sets': {'boards': hardware_set},
    }
    file = root / 'sets.yml'
    file.write_text(yaml.safe_dump(sets))
    return file
