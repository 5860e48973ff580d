# SPDX-License-Identifier: Apache-2.0
"""The kinds of jobs: each module here that has a ``KIND`` is one.

A new kind is one file: its word, ``KIND``, and ``handler(workplace)``, which makes what
does its jobs; see ``Handler`` in ``job_attempts.py`` for what that must keep to.
"""

import importlib
import pkgutil

from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace


def handlers(workplace: Workplace) -> dict[str, Handler]:
    """What does the jobs of each kind."""
    names = [found.name for found in pkgutil.iter_modules(__path__, f'{__name__}.')]
    modules = [importlib.import_module(name) for name in names]
    return {
        module.KIND: module.handler(workplace)
        for module in modules
        if hasattr(module, 'KIND')
    }
