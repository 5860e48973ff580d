# SPDX-License-Identifier: Apache-2.0
"""The bitstreams of the cloud: which there are, and which one a request means."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from cyborg_lite.exceptions import (
    BitstreamNotFound,
    BitstreamRefused,
    InvalidInput,
    NotFound,
)
from cyborg_lite.model import bitstream_choice, bitstream_list, image_wishes
from cyborg_lite.model.bitstream_choice import Fit, Target, Wanted
from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.bitstreams import Bitstream, Image


class Images(Protocol):
    """Glance, as far as it is needed here."""

    def image(self, uuid: str) -> Image: ...

    def bitstreams(self, properties: Mapping[str, str]) -> tuple[Image, ...]: ...


class Library:
    """Asks Glance each time: images come and go, and a bind takes seconds anyway."""

    def __init__(
        self, images: Images | None, largest: int, defaults: Sequence[str] = ()
    ) -> None:
        """:param images: None: there is no Glance, and so nothing to load
        :param largest: bytes that an image may have
        :param defaults: images for regions that were released; none: what was there
        """
        self._images = images
        self._largest = largest
        self._defaults = defaults

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

    def wishes(self, image_id: str) -> Mapping[str, str]:
        """What the image of a server asks of its accelerators; see ``image_wishes``.

        Nothing where there is no Glance: not every cloud has FPGAs.

        :raises InvalidInput: there is no such image, or it asks for what nobody can
        :raises ServiceUnavailable: Glance does not answer
        """
        if self._images is None:
            return {}
        try:
            image = self._images.image(image_id)
        except NotFound:
            reason = f'Glance has no image {image_id}, or not for us.'
            raise InvalidInput(reason=reason) from None
        return image_wishes.asked(image_id, image.properties)

    def ranked(self, region: Target) -> tuple[Fit, ...]:
        """All there are, those that fit first and best first.

        :raises ServiceUnavailable: Glance does not answer
        """
        found = () if self._images is None else self._images.bitstreams({})
        return bitstream_choice.ranked(found, region, self._largest)

    def listed(
        self, filters: Mapping[str, str], region: Target | None
    ) -> tuple[ListedBitstream, ...]:
        """Those of ``ranked`` that the filters ask for, as they are shown.

        :param filters: see ``bitstream_list.picked``
        :raises ServiceUnavailable: Glance does not answer
        """
        found = () if self._images is None else self._images.bitstreams({})
        wanted = bitstream_list.picked(found, filters)
        fits = bitstream_choice.ranked(wanted, region, self._largest)
        return tuple(bitstream_list.listed(fit) for fit in fits)

    def default_for(self, region: Target) -> Bitstream | None:
        """What wipes a region, the first that fits; None: nothing is to.

        :raises BitstreamNotFound: none of the default images fits
        :raises ServiceUnavailable: Glance does not answer
        """
        for image_id in self._defaults:
            try:
                return self.find(Wanted(image_id=image_id), region)
            except (BitstreamNotFound, BitstreamRefused):
                continue
        if self._defaults:
            raise BitstreamNotFound(reason='none of the default images fits.')
        return None

    def of_function(self, function_id: str, region: Target) -> Bitstream | None:
        """The best image that holds the function and fits; None: there is none.

        :raises ServiceUnavailable: Glance does not answer
        """
        for fit in self.ranked(region) if function_id else ():
            found = fit.bitstream
            if found is None or fit.reasons or found.is_shell:
                continue
            if found.function_id == function_id:
                return found
        return None
