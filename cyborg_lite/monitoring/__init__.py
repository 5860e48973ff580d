# SPDX-License-Identifier: Apache-2.0
"""Service of Prometheus metrics, for all daemons."""
