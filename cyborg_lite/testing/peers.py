# SPDX-License-Identifier: Apache-2.0
"""Doubles of Placement, Nova and Glance for conductors that crash."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.clients.glance import Glance
from cyborg_lite.clients.nova import BoundEvent, EventOutcome, Nova
from cyborg_lite.clients.placement import Consumer, Placement, ProviderTraits
from cyborg_lite.errors.base import NotFound
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.model.bitstreams.bitstreams import Image
from cyborg_lite.testing.crash_points import CrashPoint

PROJECT: Final = 'a' * 32


class FakeGlance(Glance):
    """An image service with fixed images."""

    def __init__(self, images: Sequence[tuple[Image, bytes]]) -> None:
        self._images = {image.id: (image, content) for image, content in images}

    def image(self, uuid: str) -> Image:
        """Return an image.

        :raises NotFound: there is no such image
        """
        if uuid not in self._images:
            raise NotFound(what='Image', name=uuid)
        return self._images[uuid][0]

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]:
        return tuple(
            image
            for image, _ in self._images.values()
            if properties.items() <= image.properties.items()
        )

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]:
        """Yield the content of an image.

        :raises RemoteError: the digest of the content differs from ``expected``
        """
        content = self._images[uuid][1]
        yield content
        if hashlib.new(algorithm, content).hexdigest() != expected:
            reason = f'image {uuid} does not match its digest'
            raise RemoteError(service='Glance', status=200, reason=reason)


class CrashableNova(Nova):
    """A compute service that accepts all events; each call is a step."""

    def __init__(self, crash_point: CrashPoint) -> None:
        super().__init__(None)
        self._crash_point = crash_point
        self.events: list[BoundEvent] = []

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        with self._crash_point.step('the POST to Nova'):
            self.events += events
            return tuple(EventOutcome(event, 200) for event in events)


@dataclass
class FakePlacementClient(Placement):
    """A placement service in which each instance has an allocation at one provider."""

    crash_point: CrashPoint
    provider: str
    amounts: Mapping[str, int]  # by resource class

    def list_names_with_trait(
        self, _trait: str, name: str | None = None
    ) -> frozenset[str]:
        """Return the compute node: its Nova attaches all handles."""
        return frozenset() if name is None else frozenset({name})

    def list_allocations(self, _provider: str) -> Mapping[str, Mapping[str, int]]:
        """Return no consumers: no instance is scheduled to an unused device."""
        with self.crash_point.step('the request to Placement'):
            return {}

    def sync_host(self, _hostname: str) -> None:
        """Accept an update of the providers of a host."""
        with self.crash_point.step('the update of Placement'):
            pass

    def find_consumer(self, uuid: str) -> Consumer | None:
        """Return an instance with its allocation."""
        with self.crash_point.step('the request to Placement'):
            return Consumer(uuid, PROJECT, PROJECT, 1, {self.provider: self.amounts})

    def get_usages(self, _uuid: str) -> Mapping[str, int]:
        """Return no usages: no other instance uses the device."""
        return {}

    def get_traits(self, _uuid: str) -> ProviderTraits:
        """Return no traits: no device profile has alternatives."""
        return ProviderTraits(0, frozenset())
