# SPDX-License-Identifier: Apache-2.0
"""Records: data classes of ``model`` that are read from rows, and written to them.

A field of a record is the column of the same name. The fields that are something else
are named once, where the record is declared::

    _DEVICE = Record(TopologyDevice, Device, address=Device.control_address)
    rows = session.connection().execute(_DEVICE.select())
    devices = [_DEVICE.read(row) for row in rows]
"""

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from sqlalchemy import ColumnElement, Row, Select, select
from sqlalchemy.orm import Session

T = TypeVar('T')
AnyRow = Row[*tuple[Any, ...]]  # Any: columns of any types


class From:
    """A field that a function computes from the values of columns; None is NULL."""

    # Any, here and below: SQL of any type, and the value of a column or a field.
    def __init__(self, compute: Callable[..., Any], *columns: Any) -> None:
        """Store the function and the SQL of its arguments."""
        self.compute, self.columns = compute, columns


class Record(Generic[T]):
    """The columns of a data class, and how an object of it is built from a row."""

    def __init__(self, cls: type[T], *tables: Any, **computed: Any) -> None:
        """Build the list of columns. Its last one is the id of the row, ``row_id``.

        :param tables: classes of `tables`; the first one that has a column of the name
            of a field has the field
        :param computed: by field: SQL, or ``From``. A field that is neither here nor in
            the tables is an argument of ``read``, or has its default.
        """
        self._cls = cls
        hints = get_type_hints(cls)
        sources: dict[str, Any] = {}
        for table in reversed(tables):
            names = [column.key for column in table.__table__.columns]
            stored = [name for name in names if name in hints]
            sources |= {name: getattr(table, name) for name in stored}
        self._stored = stored
        parts = {k: v for k, v in computed.items() if isinstance(v, From)}
        plain = {k: v for k, v in {**sources, **computed}.items() if k not in parts}
        self.columns = [source.label(name) for name, source in plain.items()]
        self._names = tuple(plain)
        conversions = ((name, _find_conversion(hints[name])) for name in plain)
        self._conversions = [(name, f) for name, f in conversions if f is not None]
        self._computed: list[tuple[str, Callable[..., Any], slice]] = []
        for name, part in parts.items():
            span = slice(len(self.columns), len(self.columns) + len(part.columns))
            self._computed.append((name, part.compute, span))
            self.columns += part.columns
        self.columns.append(tables[0].id.label('row_id'))

    def select(self, *further: Any) -> Select[*tuple[Any, ...]]:
        """Return a SELECT of the columns, and of further ones after them."""
        return select(*self.columns, *further)

    def read(self, row: AnyRow, **arguments: Any) -> T:
        """Return the object of a row.

        :param arguments: values of fields that the row does not contain
        :raises ValueError: a value does not have the type of its field
        :raises TypeError: a value does not have the type of its field
        """
        values = dict(zip(self._names, row, strict=False))
        for name, convert in self._conversions:
            if values[name] is not None:
                values[name] = convert(values[name])
        for name, compute, span in self._computed:
            values[name] = compute(*row[span])
        return self._cls(**{**values, **arguments})

    def find(self, session: Session, *conditions: ColumnElement[bool]) -> T | None:
        """Return the object of the only row that matches, or None."""
        statement = self.select().where(*conditions)
        row = session.execute(statement).one_or_none()
        return None if row is None else self.read(row)

    def list(
        self,
        session: Session,
        statement: Select[*tuple[Any, ...]],
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[T, ...]:
        """Return the objects of the rows of a statement."""
        rows = session.connection().execute(statement, parameters)
        return tuple(map(self.read, rows))

    def write(self, value: T, fields: Collection[str] = ()) -> dict[str, Any]:
        """Return the columns of an INSERT or UPDATE, by name.

        :param fields: empty: all fields that are columns of the first table
        """
        return {name: getattr(value, name) for name in fields or self._stored}


# Any: an annotation of a field.
def _find_conversion(hint: Any) -> Callable[[Any], Any] | None:
    """Return the function that makes a field of a column; None: they are equal."""
    for kind in (hint, *get_args(hint)):
        if get_origin(kind) is tuple:
            return tuple
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind
    return None
