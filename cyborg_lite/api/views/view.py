# SPDX-License-Identifier: Apache-2.0
"""The base class of all views."""

from wsme import types


class View(types.Base):  # type: ignore[misc]  # untyped base
    """A class of WSME with its fields in the order of their definition.

    Otherwise WSME parses the source of the module for the order of each class. That
    took 0.5 s of CPU time at the start of each process.
    """

    def __init_subclass__(cls) -> None:
        names = (name for ancestor in cls.__mro__ for name in vars(ancestor))
        cls._wsme_attr_order = tuple(  # see `wsme.types.sort_attributes`
            name
            for name in dict.fromkeys(names)
            if not name.startswith('_') and types.iswsattr(getattr(cls, name))
        )
