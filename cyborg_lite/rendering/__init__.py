# SPDX-License-Identifier: Apache-2.0
"""Pictures of the topology of a host: text, DOT, SVG, HTML and JSON."""
