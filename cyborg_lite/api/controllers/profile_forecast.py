# SPDX-License-Identifier: Apache-2.0
"""Capacity of device profiles after a change of hardware that is not made."""

from collections.abc import Mapping
from typing import ClassVar

from cyborg_lite.api import forecast_body
from cyborg_lite.api.call import Call
from cyborg_lite.api.controllers.device_profiles import ProfileResource
from cyborg_lite.api.expose import accepts, expose, requires
from cyborg_lite.api.microversion import V2_26, Microversion
from cyborg_lite.api.schemas import forecasts as schemas
from cyborg_lite.api.views.forecasts import ForecastView


class ProfileForecastResource(ProfileResource):
    """``/v2/device_profiles/explain``, which may also be the path of a profile.

    A device profile may have the name ``explain``: methods other than POST serve it.
    """

    since: ClassVar[Mapping[str, Microversion]] = {
        **ProfileResource.since,
        'POST': V2_26,
    }

    @property
    def identifier(self) -> str:
        """Name of the profile with this path."""
        return 'explain'

    @expose(ForecastView, errors=(404, 409, 500, 504))
    @requires('cyborg:device_profile:forecast')
    @accepts(body=schemas.FORECAST)
    def post(self, call: Call) -> ForecastView:
        """Show the effect of changes of hardware on device profiles.

        The changes are not made, and nothing is stored. For each device profile the
        response has the number of further servers before and after the changes.
        """
        request = forecast_body.parse_request(
            call, self.context.profile_limits, self.conductor
        )
        return ForecastView.build(
            self.conductor.forecast_capacity(call.caller, request)
        )
