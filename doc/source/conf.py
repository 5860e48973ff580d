# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

from cyborg_lite.version import version as installed_version

project = 'cyborg_lite'
version = release = installed_version()
extensions: list[str] = []
exclude_patterns: list[str] = []
html_theme = 'alabaster'
html_theme_options = {'description': 'Accelerators for OpenStack'}
