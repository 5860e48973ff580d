# SPDX-License-Identifier: Apache-2.0
"""Bitstream images as the API lists them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.bitstreams.bitstreams import Image, normalize_id
from cyborg_lite.model.bitstreams.choice import BitstreamFit
from cyborg_lite.model.text import format_value

# Image properties in the answer; all others are left out.
SHOWN: Final = (
    'bs-name',
    'bs-uuid',
    'vendor',
    'board',
    'shell_id',
    'version',
    'driver',
    'driver_ver',
    'driver_path',
    'description',
    'region_uuid',
    'function_uuid',
    'function_name',
)
_PROPERTIES_OF_FILTER: Final[Mapping[str, tuple[str, ...]]] = {
    'vendor': ('vendor',),
    'board': ('board',),
    'region': ('region_uuid',),
    'function': ('accel:function_id', 'function_uuid', 'function_name'),
}


@dataclass(frozen=True, slots=True)
class ListedBitstream:
    """An image, and the reasons why it cannot be loaded."""

    image_uuid: str
    image_name: str | None
    size: int | None  # bytes; None: no data was uploaded
    properties: Mapping[str, str]  # the properties of ``SHOWN`` that the image has
    reasons: tuple[str, ...]  # empty: the image can be loaded

    @property
    def uuid(self) -> str:
        """The uuid that marks the image in a list."""
        return self.image_uuid


def filter_images(
    images: Iterable[Image], filters: Mapping[str, str]
) -> tuple[Image, ...]:
    """Return the images that match all filters; ids match in any spelling.

    :param filters: values by the names ``vendor``, ``board``, ``region``, ``function``
    """

    def matches(image: Image, name: str, value: str) -> bool:
        texts = (image.properties.get(key, '') for key in _PROPERTIES_OF_FILTER[name])
        return normalize_id(value) in [normalize_id(text) for text in texts if text]

    return tuple(
        image
        for image in images
        if all(matches(image, name, value) for name, value in filters.items())
    )


def describe_image(fit: BitstreamFit) -> ListedBitstream:
    """Return the answer of the API for one image."""
    image, properties = fit.image, dict(fit.image.properties)
    if 'accel:function_id' in properties:
        properties['function_uuid'] = properties['accel:function_id']
    return ListedBitstream(
        image_uuid=image.id,
        image_name=None if image.name is None else format_value(image.name),
        size=image.size,
        properties={
            key: format_value(properties[key]) for key in SHOWN if properties.get(key)
        },
        reasons=fit.reasons,
    )
