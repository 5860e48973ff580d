# SPDX-License-Identifier: Apache-2.0
"""What ends the launcher with a message and status 1."""


class LaunchFailed(Exception):
    """The text says what is wrong and what to do."""
