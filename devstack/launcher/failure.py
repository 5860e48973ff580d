# SPDX-License-Identifier: Apache-2.0
"""The exception that ends the launcher with a message and status 1."""


class LaunchFailed(Exception):
    """A failure of the launcher; its text names the cause and the remedy."""
