# SPDX-License-Identifier: Apache-2.0
"""Version 2 and its collections."""

from cyborg_lite.api.call import Call
from cyborg_lite.api.controllers.arqs import Arqs
from cyborg_lite.api.controllers.attributes import Attributes
from cyborg_lite.api.controllers.bitstreams import Bitstreams
from cyborg_lite.api.controllers.deployables import Deployables
from cyborg_lite.api.controllers.device_profiles import DeviceProfiles
from cyborg_lite.api.controllers.devices import Devices
from cyborg_lite.api.controllers.jobs import Jobs
from cyborg_lite.api.controllers.openapi import OpenApi
from cyborg_lite.api.controllers.services import Services
from cyborg_lite.api.expose import expose
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.views import versions


class V2(Resource):
    """``/v2``"""

    def __init__(self, backing: Backing, root: Resource) -> None:
        """:param root: the one above"""
        super().__init__(backing)
        self._collections = {
            'device_profiles': DeviceProfiles(backing),
            'accelerator_requests': Arqs(backing),
            'devices': Devices(backing),
            'deployables': Deployables(backing),
            'attributes': Attributes(backing),
            'bitstreams': Bitstreams(backing),
            'jobs': Jobs(backing),
            'services': Services(backing),
            'openapi.json': OpenApi(backing, root),
        }

    def below(self, segment: str) -> Resource:
        return self._collections.get(segment) or super().below(segment)

    @expose(versions.VersionView)
    def get(self, call: Call) -> versions.VersionView:
        return versions.VersionView.of_itself(call.links)
