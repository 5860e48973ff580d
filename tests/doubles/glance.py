# SPDX-License-Identifier: Apache-2.0
"""Fake Glance with images and their content."""

import hashlib
from collections.abc import Iterator, Mapping

from cyborg_lite.clients.glance import Glance
from cyborg_lite.errors.base import NotFound
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.model.bitstreams.bitstreams import TAG, Image


class FakeGlance(Glance):
    """Images that tests add, and the uuids that were downloaded."""

    def __init__(self, *images: Image) -> None:
        self.all = {image.id: image for image in images}
        self.contents: dict[str, bytes] = {}
        self.is_down = False
        self.fetched: list[str] = []

    def image(self, uuid: str) -> Image:
        self._answer()
        if uuid not in self.all:
            raise NotFound(what='Image', name=uuid)
        return self.all[uuid]

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]:
        self._answer()
        return tuple(
            image
            for image in self.all.values()
            if TAG in image.tags
            and image.status == 'active'
            and properties.items() <= {**image.properties, 'name': image.name}.items()
        )

    def content(self, uuid: str, algorithm: str, expected: str) -> Iterator[bytes]:
        self._answer()
        self.fetched.append(uuid)
        content = self.contents[uuid]
        for start in range(0, len(content), 100):
            yield content[start : start + 100]
        if hashlib.new(algorithm, content).hexdigest() != expected:
            reason = f'image {uuid} has no content, or its hash differs'
            raise RemoteError(service='Glance', status=200, reason=reason)

    def _answer(self) -> None:
        if self.is_down:
            raise ServiceUnavailable(what='Glance')
