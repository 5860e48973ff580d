# SPDX-License-Identifier: Apache-2.0
"""Files and directories of the launcher."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

VARIABLE: Final = 'CYBORG_LITE_STANDALONE'
TOP: Final = Path(os.environ.get(VARIABLE) or ROOT / '.standalone').resolve()
VENV: Final = TOP / 'venv'
BIN: Final = VENV / 'bin'
PYTHON: Final = BIN / 'python'
STAMP: Final = TOP / 'installed'  # digest of the inputs of the environment

STATE: Final = TOP / 'state'  # deleted by --fresh
DATABASE: Final = STATE / 'cyborg-lite.sqlite'
PLACEMENT_DATABASE: Final = STATE / 'placement.sqlite'
NOVA_EVENTS: Final = STATE / 'nova-events.jsonl'
SAMPLE_HOST: Final = STATE / 'sample-host'
IMAGES: Final = STATE / 'images'  # of the image service
LOCKS: Final = STATE / 'locks'
AGENT: Final = STATE / 'agent'

CONFIG: Final = TOP / 'etc' / 'cyborg-lite.conf'
PLACEMENT_CONFIG: Final = TOP / 'etc' / 'placement.conf'

LOGS: Final = TOP / 'logs'
RUNNING: Final = TOP / 'running.json'
ENV: Final = TOP / 'env'
