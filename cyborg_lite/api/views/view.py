# SPDX-License-Identifier: Apache-2.0
"""The base classes of all views, and links."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, ClassVar, Final
from urllib.parse import quote

from wsme import types

from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.shapes import Json, optional, since


class View(types.Base):  # type: ignore[misc]  # untyped base
    """An object of the model in a response; the fields say how it is shown.

    A field shows the attribute of the object with the same name. If a view has a
    function ``render_<field>`` of the object and the call, the field shows its result.
    The result may be ``Unset`` if the field is optional.

        class DeviceView(View):
            uuid = UUID
            arqs_count = since(V2_4, int)

            @staticmethod
            def render_arqs_count(device: DeviceRecord, call: Call) -> int:
                return len(device.arqs)

    WSME gets the order of the fields here. Otherwise WSME parses the source of the
    module of each class, which took 0.5 s of CPU time at the start of each process.
    """

    _path: ClassVar = ''
    """Path of the ``self`` link, with one attribute in braces; empty: no such link."""

    def __init__(self, item: Any = None, **values: Any) -> None:
        """Store what is shown.

        :param item: an object of the model
        :param values: values of the fields by name, in place of an object
        """
        self.item = SimpleNamespace(**values) if values else item

    def __init_subclass__(cls) -> None:
        names = (name for ancestor in cls.__mro__ for name in vars(ancestor))
        cls._wsme_attr_order = tuple(  # see `wsme.types.sort_attributes`
            name
            for name in dict.fromkeys(names)
            if not name.startswith('_') and types.iswsattr(getattr(cls, name))
        )
        if cls._path and not hasattr(cls, 'render_links'):
            cls.render_links = staticmethod(_build_render(cls._path))


# Any: a call; this module is below the module of calls.
def _build_render(path: str) -> Callable[[Any, Any], list[dict[str, str]]]:
    """Return the function that builds the ``self`` link of an object."""
    prefix, _, suffix = path.partition('{')
    name, _, suffix = suffix.partition('}')
    if not name:
        return lambda item, call: call.links.build_self_links(path)
    return lambda item, call: call.links.build_self_links(
        # The name of a host may need quotes.
        prefix + quote(getattr(item, name), safe='') + suffix
    )


class ListView(View):
    """A page of a collection: a field with the objects, and one with the next link."""

    # Any: JSON or ``Unset``.
    def __init__(self, items: Iterable[Any], next_links: Any = types.Unset) -> None:
        names = (attribute.name for attribute in types.list_attributes(type(self)))
        # next_links: result of ``paging.build_next_link``.
        super().__init__(**dict(zip(names, (items, next_links), strict=True)))


class Link(View):
    """A URL with its relation; ``api/call/links.py`` builds it."""

    href = str
    rel = str


LINKS: Final = Json([Link])

NEXT_LINKS: Final = since(V2_4, optional(LINKS))
"""The link to the next page of a list."""
