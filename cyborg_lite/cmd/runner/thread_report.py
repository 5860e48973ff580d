# SPDX-License-Identifier: Apache-2.0
"""The report of all threads, which a daemon writes on SIGUSR2."""

import signal
from typing import Any

from oslo_config import cfg
from oslo_reports import opts

from cyborg_lite.version import VERSION


class _Version:
    """The version information that oslo.reports prints."""

    def __init__(self, binary: str) -> None:
        self._binary = binary

    def vendor_string(self) -> str:
        return 'cyborg_lite'

    def product_string(self) -> str:
        return self._binary

    def version_string_with_package(self) -> str:
        return VERSION


def set_up(conf: cfg.ConfigOpts, binary: str) -> None:
    """Write a report on SIGUSR2, or when the file of ``[oslo_reports]`` changes."""
    opts.set_defaults(conf)
    if conf.oslo_reports.file_event_handler:
        _load_reports().setup_autorun(_Version(binary), binary, conf=conf)
        return

    # Any: the frame that the signal has interrupted.
    def write_report(_number: int, frame: Any) -> None:
        directory = conf.oslo_reports.log_dir
        _load_reports().handle_signal(_Version(binary), binary, directory, frame)

    signal.signal(signal.SIGUSR2, write_report)


# Any: a class of oslo.reports, which has no types.
def _load_reports() -> Any:
    """Return the class of the reports.

    The import takes 3 MB, and most daemons end without a report.
    """
    from oslo_reports import guru_meditation_report

    return guru_meditation_report.TextGuruMeditation
