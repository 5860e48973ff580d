# SPDX-License-Identifier: Apache-2.0
"""The catalog of bitstreams: images in Glance, and their choice for a region.

All methods that read images raise ``ServiceUnavailable`` if Glance does not answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.clients.glance import Glance
from cyborg_lite.errors.base import InvalidInput, NotFound
from cyborg_lite.errors.bitstreams import BitstreamNotFound, BitstreamRefused
from cyborg_lite.model.bitstreams import choice, listing
from cyborg_lite.model.bitstreams.bitstreams import Bitstream, Image
from cyborg_lite.model.bitstreams.choice import (
    BitstreamFit,
    BitstreamQuery,
    RegionProperties,
)
from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.profiles import group_keys
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.profiles.selector_keys import name_bitstream_attribute


@dataclass(frozen=True, slots=True)
class BitstreamCatalog:
    """Finds bitstreams in Glance.

    Nothing is cached: images may be added and deleted at any time, and loading one
    takes seconds anyway.
    """

    images: Glance | None  # None: no Glance is configured, and the catalog is empty
    largest: int  # size limit of an image, in bytes
    # Uuids of images for released regions. Empty: a released region gets its previous
    # bitstream.
    defaults: Sequence[str] = ()

    def find(self, query: BitstreamQuery, region: RegionProperties) -> Bitstream:
        """Return the bitstream that matches the query and fits the region.

        Only the properties of the image are read, not its content.

        :raises BitstreamNotFound: no image matches, or several do
        :raises BitstreamRefused: the image does not fit; the error lists all reasons
        """
        images = self._find_images(query)
        return choice.choose_bitstream(query, images, region, self.largest)

    def list_refusals(
        self, query: BitstreamQuery, regions: Mapping[str, RegionProperties]
    ) -> Mapping[str, str]:
        """Return why a bind could not load the bitstream, by the key of the region.

        Regions that can load it are omitted. The images are read once.
        """
        try:
            images = self._find_images(query)
        except BitstreamNotFound as error:
            return dict.fromkeys(regions, error.text)
        refusals = {}
        for key, region in regions.items():
            try:
                choice.choose_bitstream(query, images, region, self.largest)
            except (BitstreamNotFound, BitstreamRefused) as error:
                refusals[key] = error.text
        return refusals

    def list_loadable(
        self,
        groups: Iterable[Mapping[str, str]],
        regions: Mapping[str, RegionProperties],
    ) -> Mapping[str, Sequence[str]]:
        """Return the attributes of the bitstreams that a bind can load.

        :returns: sorted names of ``name_bitstream_attribute``, by the key of the region
        """
        queries = {
            name: query
            for group in groups
            if (name := name_bitstream_attribute(group))
            and (query := choice.parse_query(Group.parse(group)))
        }
        loadable: dict[str, list[str]] = {}
        for name in sorted(queries):
            refusals = self.list_refusals(queries[name], regions)
            for key in regions.keys() - refusals.keys():
                loadable.setdefault(key, []).append(name)
        return loadable

    def _find_images(self, query: BitstreamQuery) -> Sequence[Image]:
        if self.images is None:
            reason = 'the conductor has no [glance] section.'
            raise BitstreamNotFound(reason=reason)
        if query.image_id is not None:
            try:
                return (self.images.image(query.image_id),)
            except NotFound:
                raise BitstreamNotFound(reason=_missing(query.image_id)) from None
        if query.name is not None:
            # The name of the bitstream or of the image.
            by_name = (
                *self.images.bitstreams({'bs-name': query.name}),
                *self.images.bitstreams({'name': query.name}),
            )
            return tuple({image.id: image for image in by_name}.values())
        # Either of two properties names the function, in any spelling. Glance cannot
        # filter by that.
        return self.images.bitstreams({})

    def read_image_properties(self, image_id: str) -> Mapping[str, str]:
        """Return the accelerator properties of the image of an instance.

        :returns: see ``image_properties``; empty without Glance, since a cloud without
            FPGAs need not configure it
        :raises InvalidInput: the image does not exist, or has an invalid property
        """
        if self.images is None:
            return {}
        try:
            image = self.images.image(image_id)
        except NotFound:
            raise InvalidInput(reason=_missing(image_id)) from None
        return group_keys.parse_image_properties(image_id, image.properties)

    def rank(self, region: RegionProperties) -> tuple[BitstreamFit, ...]:
        """Return all bitstreams: first those that fit the region, best first."""
        images = self._list_images()
        return choice.rank_images(images, region, self.largest)

    def list(
        self, filters: Mapping[str, str], region: RegionProperties | None
    ) -> tuple[ListedBitstream, ...]:
        """Return the bitstreams that match the filters, in the order of ``rank``.

        :param filters: see ``bitstream_list.filter_images``
        :param region: None: judge each image without regard to a region
        """
        images = listing.filter_images(self._list_images(), filters)
        fits = choice.rank_images(images, region, self.largest)
        return tuple(listing.describe_image(fit) for fit in fits)

    def find_default(self, region: RegionProperties) -> Bitstream | None:
        """Return the first default image that fits the region.

        :returns: None if no default images are configured
        :raises BitstreamNotFound: none of the default images fits
        """
        for image_id in self.defaults:
            try:
                return self.find(BitstreamQuery(image_id=image_id), region)
            except (BitstreamNotFound, BitstreamRefused):
                continue
        if self.defaults:
            reason = 'no image of [conductor] default_images fits.'
            raise BitstreamNotFound(reason=reason)
        return None

    def find_by_function(
        self, function_id: str, region: RegionProperties
    ) -> Bitstream | None:
        """Return the best bitstream that has the function and fits the region.

        :param function_id: empty: no function is known, and the result is None
        """
        for fit in self.rank(region) if function_id else ():
            bitstream = fit.bitstream
            if bitstream is None or fit.reasons or bitstream.is_shell:
                continue
            if bitstream.function_id == function_id:
                return bitstream
        return None

    def _list_images(self) -> tuple[Image, ...]:
        return () if self.images is None else self.images.bitstreams({})


NO_BITSTREAMS: Final = BitstreamCatalog(None, 0)
"""The catalog of a conductor without Glance."""


def _missing(image_id: str) -> str:
    return f'image {image_id} does not exist in Glance, or is not visible.'
