# SPDX-License-Identifier: Apache-2.0
"""The agent on a real Linux kernel, under a real systemd, in a virtual machine."""
