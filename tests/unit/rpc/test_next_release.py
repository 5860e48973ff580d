# SPDX-License-Identifier: Apache-2.0
"""The patch of the imaginary next release fits this checkout.

``tests/functional/test_rolling_upgrade.py`` runs its daemons.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.builders.next_release import schema, tree

_READ: Final = """
import json
from cyborg_lite.conductor.service import HANDLERS
from cyborg_lite.db.core import migration
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR
from cyborg_lite.version import VERSION
facts = VERSION, CONDUCTOR.version, AGENTS.version, migration.head_revision()
print(json.dumps([*facts, [*HANDLERS]]))
"""


def test_next_release_adds_versions_and_job_type(tmp_path: Path) -> None:
    folder = tree.write_tree(tmp_path / 'next')
    output = subprocess.check_output(
        [sys.executable, '-W', 'ignore', '-c', _READ],
        env={**os.environ, 'PYTHONPATH': str(folder), 'PYTHONSAFEPATH': '1'},
    )
    *versions, job_types = json.loads(output)
    assert versions == [tree.VERSION, '1.1', '1.1', schema.CONTRACTION]
    assert tree.JOB_TYPE in job_types
