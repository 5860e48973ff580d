# SPDX-License-Identifier: Apache-2.0
"""What clients started and follow: the programming of deployables."""

from cyborg_lite.api import arguments
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.views.jobs import JobView


class Jobs(Resource):
    """``/v2/jobs``; there is no list of them."""

    def below(self, segment: str) -> Resource:
        return Job(self.backing, segment)


class Job(Resource):
    """``/v2/jobs/{uuid}``"""

    def __init__(self, backing: Backing, identifier: str) -> None:
        super().__init__(backing)
        self._identifier = identifier

    @expose(JobView)
    @requires('cyborg:job:get_one')
    @since(V2_4, 'A job')
    @accepts()
    def get(self, call: Call) -> JobView:
        uuid = arguments.uuid('A job', self._identifier)
        job = self.conductor.show_program_job(call.caller, uuid)
        return JobView.showing(job, call.links)
