# SPDX-License-Identifier: Apache-2.0
"""Deployables, and programming of a deployable with a bitstream."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.microversion import V2_4, V2_24
from cyborg_lite.api.resource import ApiContext, Resource
from cyborg_lite.api.schemas import deployables as schemas
from cyborg_lite.api.schemas.arguments import LONGEST_PREFIX
from cyborg_lite.api.views.deployables import DeployableList, DeployableView
from cyborg_lite.api.views.jobs import JobView
from cyborg_lite.exceptions import DeployableNotFound, NotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value

_RELATED: Final = ('parent_uuid', 'root_uuid')
_EXACT: Final = ('name', 'device_id', 'rp_uuid', 'driver_name', 'bitstream_id')
_FILTERS: Final = (*arguments.PAGING, *_RELATED, 'name')


class DeployableCollection(Resource):
    """``/v2/deployables``"""

    @expose(DeployableList)
    @requires('cyborg:deployable:get_all')
    @accepts(
        arguments=arguments.PAGING,
        filters=_FILTERS,
        newer=(*_RELATED, *_EXACT),
        argument_versions={arguments.PREFIX: V2_24},
        selectable=(DeployableView,),
    )
    def get(self, call: Call) -> DeployableList:
        """List deployables.

        A deployable is a part of a device that has its own inventory in Placement.
        """
        values = call.arguments
        filters = arguments.select_filters(values, _EXACT)
        filters |= arguments.select_prefix_filter(values, LONGEST_PREFIX)
        for name in _RELATED:
            if name in values:
                filters[name] = (arguments.parse_uuid(name, values[name]),)
        query = paging.build_query(call, **filters)
        query = replace(query, brief=not call.selects('attributes_list'))
        records = self.conductor.list_deployables(call.caller, query)
        return DeployableList(records, paging.build_next_link(call, query, records))


class DeployableResource(Resource):
    """``/v2/deployables/{uuid}``"""

    @expose(DeployableView)
    @requires('cyborg:deployable:get_one')
    @accepts(selectable=(DeployableView,))
    def get(self, call: Call) -> DeployableView:
        """Show a deployable.

        A deployable is a part of a device that has its own inventory in Placement.
        """
        uuid = arguments.parse_uuid('The deployable id', self.identifier)
        brief = not call.selects('attributes_list')
        query = Query(filters={'uuid': (uuid,)}, brief=brief)
        for deployable in self.conductor.list_deployables(call.caller, query):
            return DeployableView(deployable)
        raise DeployableNotFound(uuid=uuid)


class ProgramDeployable(Resource):
    """``/v2/deployables/{uuid}/program``"""

    @expose(DeployableView, accepted=(JobView,), errors=(409, 500, 504))
    @requires('cyborg:deployable:program')
    @accepts(body=schemas.PROGRAM)
    def patch(self, call: Call) -> DeployableView | JobView:
        """Program a deployable with a bitstream.

        The body names an image in Glance. Since 2.4 the work continues after the
        response, which is 202 with a job. Before 2.4 the response is sent when the
        deployable is programmed.
        """
        uuid = arguments.parse_uuid('The deployable id', self.identifier)
        image = arguments.parse_uuid(
            'image_uuid', call.body[0]['value'][0]['image_uuid']
        )
        if call.microversion >= V2_4:
            job = self.conductor.start_programming(call.caller, uuid, image)
            return JobView(job)
        deployable = self.conductor.program_deployable(call.caller, uuid, image)
        return DeployableView(deployable)


class ProgramDeployableAlias(ProgramDeployable):
    """``/v2/deployables/{uuid}/program/{uuid}``, the path that the SDK uses."""

    def __init__(self, context: ApiContext, identifiers: Sequence[str] = ()) -> None:
        """Store the arguments.

        :raises NotFound: the two uuids of the path differ
        """
        super().__init__(context, identifiers)
        first, second = identifiers
        if uuids.normalize_uuid(first) != uuids.normalize_uuid(second):
            raise NotFound(what='Resource', name=format_value(second))
