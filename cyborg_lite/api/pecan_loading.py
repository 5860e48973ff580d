# SPDX-License-Identifier: Apache-2.0
"""The import of web libraries without the libraries that they only use if installed.

Pecan imports SQLAlchemy and Pygments, for rows in responses and for error pages of
templates. Both take 17 MB of a process that does not use them. WebOb imports Paste, and
oslo.middleware imports greenlet, which take another 1 MB.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OPTIONAL: Final = ('sqlalchemy', 'pygments', 'paste.httpexceptions', 'greenlet')


@contextmanager
def _hide_modules(names: tuple[str, ...]) -> Iterator[None]:
    """Refuse imports of modules in the body, except of those already imported.

    None makes an import raise ModuleNotFoundError, see "The module cache" in the Python
    reference.
    """
    hidden = [name for name in names if name not in sys.modules]
    try:
        for name in hidden:
            sys.modules[name] = None  # type: ignore[assignment]  # typeshed omits None
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with _hide_modules(_OPTIONAL):
    import oslo_middleware
    import pecan

__all__ = ['oslo_middleware', 'pecan']
