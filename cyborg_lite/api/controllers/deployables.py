# SPDX-License-Identifier: Apache-2.0
"""Deployables, and the programming of them."""

from typing import Final

from cyborg_lite.api import arguments, paging
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.schemas import deployables as schemas
from cyborg_lite.api.views.deployables import DeployableList, DeployableView
from cyborg_lite.api.views.jobs import JobView
from cyborg_lite.exceptions import DeployableNotFound
from cyborg_lite.model import uuids
from cyborg_lite.model.queries import Query

_RELATED: Final = ('parent_uuid', 'root_uuid')
_EXACT: Final = ('name', 'device_id', 'rp_uuid', 'driver_name', 'bitstream_id')
_FILTERS: Final = (*arguments.PAGING, *_RELATED, 'name')


class Deployables(Resource):
    """``/v2/deployables``"""

    def below(self, segment: str) -> Resource:
        return Deployable(self.backing, segment)

    @expose(DeployableList)
    @requires('cyborg:deployable:get_all')
    @accepts(arguments=arguments.PAGING, filters=_FILTERS, newer=(*_RELATED, *_EXACT))
    def get(self, call: Call) -> DeployableList:
        given = call.arguments
        exact = arguments.exact(given, _EXACT)
        for name in _RELATED:
            if name in given:
                exact[name] = (arguments.uuid(name, given[name]),)
        query = arguments.query(given, **exact)
        found = self.conductor.list_deployables(call.caller, query)
        more = paging.next_page(call, query, found)
        return DeployableList.showing(found, call.links, more)


class Deployable(Resource):
    """``/v2/deployables/{uuid}``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    def below(self, segment: str) -> Resource:
        if segment == 'program':
            return Program(self.backing, self._identifier)
        return super().below(segment)

    @expose(DeployableView)
    @requires('cyborg:deployable:get_one')
    @accepts()
    def get(self, call: Call) -> DeployableView:
        uuid = arguments.uuid('A deployable', self._identifier)
        query = Query(filters={'uuid': (uuid,)})
        for deployable in self.conductor.list_deployables(call.caller, query):
            return DeployableView.showing(deployable, call.links)
        raise DeployableNotFound(uuid=uuid)


class Program(Resource):
    """``/v2/deployables/{uuid}/program``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    def below(self, segment: str) -> Resource:
        # The SDK says the uuid once more.
        if uuids.canonical(segment) == uuids.canonical(self._identifier):
            return Repeated(self.backing, self._identifier)
        return super().below(segment)

    @expose(DeployableView, accepted=JobView, errors=(409, 500, 504))
    @requires('cyborg:deployable:program')
    @accepts(body=schemas.PROGRAM)
    def patch(self, call: Call) -> DeployableView | JobView:
        uuid = arguments.uuid('A deployable', self._identifier)
        image = arguments.uuid('image_uuid', call.body[0]['value'][0]['image_uuid'])
        if call.microversion >= V2_4:
            job = self.conductor.start_programming(call.caller, uuid, image)
            return JobView.showing(job, call.links)
        programmed = self.conductor.program_deployable(call.caller, uuid, image)
        return DeployableView.showing(programmed, call.links)


class Repeated(Program):
    """``/v2/deployables/{uuid}/program/{uuid}``"""

    def below(self, segment: str) -> Resource:
        return Resource.below(self, segment)
