# SPDX-License-Identifier: Apache-2.0
"""Encoders of views: functions that turn an object of the model into JSON.

An encoder is compiled from the fields of a view, once for each microversion. WSME
would check and convert each value of each object, which took most of the time of a
list. It only declares the fields.
"""

import functools
from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import Microversion
from cyborg_lite.api.views.shapes import (
    Convert,
    Shape,
    has_field,
    resolve_wsme_type,
    shape_of,
)
from cyborg_lite.api.views.view import View

# Clients choose the fields of a response, so the number of encoders needs a limit.
_MAX_ENCODERS: Final = 1024


class _Form(NamedTuple):
    """Form of a response: microversion and fields."""

    version: Microversion
    fields: frozenset[str] | None  # that the client requests; None: all
    selectable: tuple[type[View], ...]  # the views to which ``fields`` applies

    # Any: WSME is untyped.
    def list_fields(self, view: type[View]) -> list[tuple[str, Any]]:
        """Return the name and the type of each field that a view has in the form."""
        names = self.fields if view in self.selectable else None
        return [
            (attribute.name, attribute.datatype)
            for attribute in types.list_attributes(view)
            if has_field(attribute.datatype, self.version)
            and (names is None or attribute.name in names)
        ]


def encode(view: View, call: Call) -> dict[str, Any]:
    """Return the JSON object of a view, with the fields that the call requests."""
    form = _Form(call.microversion, call.fields, call.selectable)
    # Any: mypy compares the method for the hash of instances, not that of the class.
    encoder = _compile_view(cast(Any, type(view)), form)
    content: dict[str, Any] = encoder(view.item, call)
    return content


@functools.lru_cache(_MAX_ENCODERS)
def _compile_view(view: type[View], form: _Form) -> Convert:
    """Return the function that encodes an object of the model."""
    kinds = dict(form.list_fields(view))
    template = dict.fromkeys(kinds)  # the keys have the order of the fields
    optional = [name for name, kind in kinds.items() if shape_of(kind).optional]
    # Most values need no call. A list of fields for each way to a value saves them.
    plain, converted, rendered = _sort_fields(view, kinds, form)

    def encode_object(item: Any, call: Call) -> dict[str, Any] | None:
        if item is None:
            return None
        content: dict[str, Any] = template.copy()
        for name, attribute in plain:
            content[name] = getattr(item, attribute)
        for name, attribute, convert in converted:
            content[name] = convert(getattr(item, attribute), call)
        for name, render in rendered:
            content[name] = render(item, call)
        for name in optional:
            if content[name] is types.Unset:
                del content[name]
        return content

    return encode_object


def _sort_fields(
    view: type[View], kinds: Mapping[str, Any], form: _Form
) -> tuple[
    list[tuple[str, str]], list[tuple[str, str, Convert]], list[tuple[str, Convert]]
]:
    """Return the fields that show an attribute, a converted one, or another value.

    :param kinds: types of the fields, by name
    """
    plain, converted, rendered = [], [], []
    for name, kind in kinds.items():
        attribute = shape_of(kind).source or name
        convert = _compile_kind(kind, form)
        render = getattr(view, f'render_{name}', None)
        if render is None and '.' in attribute:
            render = _build_reader(attribute)
        if render is not None:
            rendered.append((name, _chain(render, convert)))
        elif convert is not None:
            converted.append((name, attribute, convert))
        else:
            plain.append((name, attribute))
    return plain, converted, rendered


def _build_reader(path: str) -> Convert:
    """Return a function that reads an attribute of an attribute of an object."""
    read = attrgetter(path)
    return lambda item, call: read(item)


def _chain(render: Convert, convert: Convert | None) -> Convert:
    if convert is None:
        return render
    return lambda item, call: convert(render(item, call), call)


def _compile_kind(kind: Any, form: _Form) -> Convert | None:
    """Return the conversion of values of a WSME type; None: they are JSON already."""
    kind = resolve_wsme_type(kind)
    if types.iscomplex(kind):
        return _compile_view(kind, form)
    if isinstance(kind, Shape):
        convert = kind.compile(form.version, lambda kind: _compile_kind(kind, form))
        return _pass_unset(convert) if convert and kind.optional else convert
    if isinstance(kind, types.ArrayType):
        return _convert_list(_compile_kind(kind.item_type, form))
    if isinstance(kind, types.DictType):
        return _convert_dict(_compile_kind(kind.value_type, form))
    return _convert_time if kind is datetime else None


def _pass_unset(convert: Convert) -> Convert:
    return lambda value, call: value if value is types.Unset else convert(value, call)


def _convert_time(time: datetime | None, call: Call) -> str | None:
    return None if time is None else time.isoformat()


def _convert_list(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda values, call: None if values is None else list(values)
    return lambda values, call: (
        None if values is None else [convert(value, call) for value in values]
    )


def _convert_dict(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda values, call: None if values is None else dict(values)
    return lambda values, call: (
        None
        if values is None
        else {name: convert(value, call) for name, value in values.items()}
    )
