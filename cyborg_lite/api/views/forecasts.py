# SPDX-License-Identifier: Apache-2.0
"""Effects of changes of hardware in the responses of the API."""

from typing import Self

from cyborg_lite.api.views.modes import OfferedInventoryView
from cyborg_lite.api.views.server_capacity import CapacityView
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.forecasts import (
    ChangeEffect,
    Forecast,
    ForecastResult,
    ProfileForecast,
)


class ChangeEffectView(View):
    """The inventory that a change adds to a host and removes from it.

    ``device`` is null for new devices, and ``mode`` for other changes than of a mode.
    """

    hostname = str
    device = nullable(UUID)
    mode = nullable(str)
    appears = [OfferedInventoryView]  # WSME: the type of a list
    vanishes = [OfferedInventoryView]  # WSME: the type of a list
    warnings = [str]  # WSME: the type of a list

    @classmethod
    def build(cls, effect: ChangeEffect) -> Self:
        """Build the view."""
        return cls(
            hostname=effect.hostname,
            device=effect.device_uuid or None,
            mode=effect.mode or None,
            appears=[OfferedInventoryView.build(item) for item in effect.appears],
            vanishes=[OfferedInventoryView.build(item) for item in effect.vanishes],
            warnings=list(effect.warnings),
        )


class ProfileForecastView(View):
    """The capacity of a device profile before and after the changes.

    ``after`` is null if ``result`` is unknown and no number can be given; ``reasons``
    say why. The device profile is null if it does not exist.
    """

    device_profile_uuid = nullable(UUID)
    device_profile_name = nullable(str)
    result = enum_of(ForecastResult)
    reasons = [str]  # WSME: the type of a list
    before = CapacityView
    after = nullable(CapacityView)

    @classmethod
    def build(cls, forecast: ProfileForecast) -> Self:
        """Build the view."""
        return cls(
            device_profile_uuid=forecast.uuid or None,
            device_profile_name=forecast.name or None,
            result=forecast.result.value,
            reasons=list(forecast.reasons),
            before=CapacityView.build(forecast.before),
            after=forecast.after and CapacityView.build(forecast.after),
        )


class ForecastView(View):
    """The effects of changes on hosts and on device profiles."""

    changes = [ChangeEffectView]  # WSME: the type of a list
    device_profiles = [ProfileForecastView]  # WSME: the type of a list

    @classmethod
    def build(cls, forecast: Forecast) -> Self:
        """Build the view."""
        return cls(
            changes=[ChangeEffectView.build(effect) for effect in forecast.effects],
            device_profiles=[
                ProfileForecastView.build(profile) for profile in forecast.profiles
            ],
        )
