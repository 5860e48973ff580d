# SPDX-License-Identifier: Apache-2.0
"""Work that a thread of a conductor repeats until the conductor stops."""

import threading
from collections.abc import Callable

from oslo_log import log

from cyborg_lite.errors.base import CyborgError

LOG = log.getLogger(__name__)


def attempt(work: Callable[[], object], subject: str) -> None:
    """Do the work once; log a failure.

    :param subject: what the work is, for the log
    """
    try:
        work()
    except CyborgError as error:
        LOG.error('%s failed: %s', subject, error.text)
    except Exception:  # a programming error must not end the thread
        LOG.exception('%s failed', subject)


def repeat(
    work: Callable[[], object],
    subject: str,
    choose_pause: Callable[[], float],
    stopping: threading.Event,
) -> None:
    """Do the work after each pause, until the stop event is set.

    :param choose_pause: returns seconds
    """
    while not stopping.wait(choose_pause()):
        attempt(work, subject)
