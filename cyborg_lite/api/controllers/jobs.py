# SPDX-License-Identifier: Apache-2.0
"""Programming jobs of deployables."""

from cyborg_lite.api import arguments
from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose, requires, since
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.resource import Resource
from cyborg_lite.api.views.jobs import JobView


class JobCollection(Resource):
    """``/v2/jobs``; jobs cannot be listed."""


class JobResource(Resource):
    """``/v2/jobs/{uuid}``"""

    @expose(JobView)
    @requires('cyborg:job:get_one')
    @since(V2_4, 'A programming job')
    @accepts()
    def get(self, call: Call) -> JobView:
        """Show a programming job."""
        uuid = arguments.parse_uuid('The job id', self.identifier)
        job = self.conductor.show_program_job(call.caller, uuid)
        return JobView.build(job, call.links)
