# SPDX-License-Identifier: Apache-2.0
"""Errors of the emulated kernel."""

import os


def fail(number: int) -> OSError:
    """Return the error of the kernel with an errno."""
    return OSError(number, os.strerror(number))
