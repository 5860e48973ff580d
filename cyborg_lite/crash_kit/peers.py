# SPDX-License-Identifier: Apache-2.0
"""What stands for Placement, Nova and Glance around a conductor that may die."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.clients.nova import BoundEvent, EventOutcome, Nova
from cyborg_lite.clients.placement import Consumer
from cyborg_lite.crash_kit.fate import Fate
from cyborg_lite.exceptions import NotFound, RemoteError
from cyborg_lite.model.bitstreams import Image

PROJECT: Final = 'a' * 32


class Shelf:
    """Glance, with the images that a test puts on it."""

    def __init__(self, images: Sequence[tuple[Image, bytes]]) -> None:
        self._images = {image.id: (image, content) for image, content in images}

    def image(self, uuid: str) -> Image:
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
        content = self._images[uuid][1]
        yield content
        if hashlib.new(algorithm, content).hexdigest() != expected:
            reason = f'image {uuid} is not what its hash says'
            raise RemoteError(service='Glance', status=200, reason=reason)


class MortalNova(Nova):
    def __init__(self, fate: Fate) -> None:
        super().__init__(None)
        self._fate = fate
        self.heard: list[BoundEvent] = []

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        with self._fate.step('the POST to Nova'):
            self.heard += events
            return tuple(EventOutcome(event, 200) for event in events)


@dataclass
class AllocatingPlacement:
    """Has allocated one provider to whoever asks."""

    fate: Fate
    provider: str

    def consumer(self, uuid: str) -> Consumer | None:
        with self.fate.step('the look at Placement'):
            return Consumer(uuid, PROJECT, PROJECT, 1, {self.provider: {}})
