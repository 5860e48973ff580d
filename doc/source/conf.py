# SPDX-License-Identifier: Apache-2.0
"""Configuration of Sphinx."""

import sys
from pathlib import Path

from cyborg_lite.version import VERSION

project = 'cyborg_lite'
version = release = VERSION
sys.path[:0] = [str(Path(__file__).parent / '_exts'), str(Path(__file__).parents[2])]
extensions = ['arq_states', 'command_help', 'diagrams', 'host_topology']
exclude_patterns: list[str] = []
html_theme = 'furo'
html_title = 'cyborg_lite'
html_show_copyright = False
html_static_path = ['_static']
html_css_files = ['pages.css']
