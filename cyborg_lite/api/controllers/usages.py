# SPDX-License-Identifier: Apache-2.0
"""Types of units that projects may request, their use and their limits."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Final

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_7
from cyborg_lite.api.views.usages import DeviceTypeList, LimitList, UsageList
from cyborg_lite.errors.base import Forbidden, InvalidInput
from cyborg_lite.model.arqs.usages import MAX_DAYS, UsageQuery
from cyborg_lite.model.queries import SORT_KEYS
from cyborg_lite.model.text import format_value, is_storable

_DEFAULT_DAYS: Final = 30
_LONGEST_TEXT: Final = 40  # characters of a time
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class UsageCollection(Resource):
    """``/v2/usages``"""

    @expose()
    @requires('cyborg:usage:get')
    @since(V2_7)
    @accepts(arguments=('start', 'end', 'project_id', *arguments.PAGING))
    def get(self, call: Call) -> UsageList:
        """Sum the use of units by project, resource class and device profile.

        The period has at most 366 days. A user sees the use of the project of the
        token, and an administrator the use of all projects or of one.
        """
        period, query = _parse_query(call), paging.build_query(call)
        if period.project_id != call.caller.project_id and not call.caller.is_admin:
            reason = 'The use of other projects is shown to administrators only.'
            raise Forbidden(reason=reason)
        report = self.conductor.sum_usages(call.caller, period)
        page = paging.select_page(query, report.usages, *SORT_KEYS['usages'])
        return UsageList(
            start=_to_time(period.start),
            end=_to_time(report.end),
            usages=page,
            usages_links=paging.build_next_link(call, query, page),
        )


class LimitCollection(Resource):
    """``/v2/limits``"""

    @expose()
    @requires('cyborg:limit:get_all')
    @since(V2_7)
    @accepts()
    def get(self, call: Call) -> LimitList:
        """List the limits of the project of the token, and what it uses.

        The resources are ARQs, ARQs that were never bound, and the units of each
        resource class that the device profiles of the project request.
        """
        return LimitList(limits=self.conductor.list_limits(call.caller))


class DeviceTypeCollection(Resource):
    """``/v2/device_types``"""

    @expose()
    @requires('cyborg:device_type:get_all')
    @since(V2_7)
    @accepts()
    def get(self, call: Call) -> DeviceTypeList:
        """List the types of devices that the device profiles of the project name.

        A unit of a type serves the groups of the named profiles. An administrator also
        sees the types that no profile names. The option [api] device_type_availability
        decides whether users read if units are free, or how many.
        """
        availability = (
            'number' if call.caller.is_admin else self.context.device_type_availability
        )
        types = [
            SimpleNamespace(
                type=item,
                is_available=item.free_units > 0 if availability != 'none' else None,
                free_units=item.free_units if availability == 'number' else None,
            )
            for item in self.conductor.list_device_types(call.caller)
        ]
        return DeviceTypeList(device_types=types)


def _parse_query(call: Call) -> UsageQuery:
    """Return the query of the arguments.

    Without the argument ``project_id`` it selects all projects for an administrator,
    and the project of the caller for others.

    :raises InvalidInput: an argument is invalid
    """
    values = call.arguments
    end = _parse_time('end', values['end']) if 'end' in values else datetime.now(UTC)
    start = max(end - timedelta(days=_DEFAULT_DAYS), _EPOCH)
    if 'start' in values:
        start = _parse_time('start', values['start'])
    if start >= end:
        raise InvalidInput(reason='start must be before end.')
    if end - start > timedelta(days=MAX_DAYS):
        raise InvalidInput(
            reason=f'The period from start to end must have at most {MAX_DAYS} days.'
        )
    own_project = None if call.caller.is_admin else call.caller.project_id
    project = values.get('project_id', own_project)
    if project is not None and not (project and is_storable(project)):
        raise InvalidInput(reason='project_id must be the id of a project.')
    return UsageQuery(_to_ms(start), _to_ms(end), project)


def _parse_time(name: str, text: str) -> datetime:
    """Return a time that is given as ISO 8601 text; UTC if the text has no offset.

    :raises InvalidInput: the text is no such time, or it lies before 1970 or after 9998
    """
    try:
        if len(text) > _LONGEST_TEXT:
            raise ValueError
        time = datetime.fromisoformat(text)
        aware = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        aware = _EPOCH - timedelta(days=1)
    if not _EPOCH <= aware < datetime(9999, 1, 1, tzinfo=UTC):
        raise InvalidInput(
            reason=f'{name} must be a time since 1970 such as 2026-01-31T12:00:00Z, '
            f'not {format_value(text)}.'
        )
    return aware


def _to_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _to_ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)
