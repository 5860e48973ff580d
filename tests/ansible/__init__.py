# SPDX-License-Identifier: Apache-2.0
"""Tests of the Ansible collection with ansible-core."""
