# SPDX-License-Identifier: Apache-2.0
"""The bitstreams of the cloud: which there are, and which one a request means."""

from collections.abc import Mapping
from typing import Protocol

from cyborg_lite.exceptions import BitstreamNotFound, NotFound
from cyborg_lite.model import bitstream_choice
from cyborg_lite.model.bitstream_choice import Fit, Target, Wanted
from cyborg_lite.model.bitstreams import Bitstream, Image


class Images(Protocol):
    """Glance, as far as it is needed here."""

    def image(self, uuid: str) -> Image: ...

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]: ...


class Library:
    """Asks Glance each time: images come and go, and a bind takes seconds anyway."""

    def __init__(self, images: Images | None, largest: int) -> None:
        """:param images: None: there is no Glance, and so nothing to load
        :param largest: bytes that an image may have
        """
        self._images = images
        self._largest = largest

    def find(self, wanted: Wanted, region: Target) -> Bitstream:
        """The one that is meant and fits, before a byte of it was fetched.

        :raises BitstreamNotFound: there is none, or several
        :raises BitstreamRefused: with everything that is wrong with the one
        :raises ServiceUnavailable: Glance does not answer
        """
        if self._images is None:
            reason = 'the conductor has no [glance] section.'
            raise BitstreamNotFound(reason=reason)
        if wanted.image_id is not None:
            try:
                found: tuple[Image, ...] = (self._images.image(wanted.image_id),)
            except NotFound:
                reason = f'Glance has no image {wanted.image_id}, or not for us.'
                raise BitstreamNotFound(reason=reason) from None
        elif wanted.name is not None:
            found = self._images.bitstreams({'bs-name': wanted.name})
        else:
            # A function is named by either of two properties, in any spelling.
            found = self._images.bitstreams({})
        return bitstream_choice.chosen(wanted, found, region, self._largest)

    def ranked(self, region: Target) -> tuple[Fit, ...]:
        """All there are, those that fit first and best first.

        :raises ServiceUnavailable: Glance does not answer
        """
        found = () if self._images is None else self._images.bitstreams({})
        return bitstream_choice.ranked(found, region, self._largest)
