# SPDX-License-Identifier: Apache-2.0
"""Images of Glance as they are listed: what each says, and why it would be refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.bitstream_choice import Fit
from cyborg_lite.model.bitstreams import Image, normal_id
from cyborg_lite.model.text import shown

# What an image may say of itself that is worth showing; all else is left out.
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
_FILTERED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    'vendor': ('vendor',),
    'board': ('board',),
    'region': ('region_uuid',),
    'function': ('accel:function_id', 'function_uuid', 'function_name'),
}


@dataclass(frozen=True, slots=True)
class ListedBitstream:
    image_uuid: str
    image_name: str | None
    size: int | None  # bytes; None: nothing was uploaded
    properties: Mapping[str, str]  # of ``SHOWN``; what is not there was not said
    reasons: tuple[str, ...]  # why it is refused; none: it can be loaded


def picked(images: Iterable[Image], filters: Mapping[str, str]) -> tuple[Image, ...]:
    """Those whose properties are what the filters ask for, in any spelling of an id.

    :param filters: values by the names ``vendor``, ``board``, ``region``, ``function``
    """
    return tuple(
        image
        for image in images
        if all(_says(image, name, value) for name, value in filters.items())
    )


def _says(image: Image, name: str, value: str) -> bool:
    said = (image.properties.get(key, '') for key in _FILTERED_BY[name])
    return normal_id(value) in [normal_id(text) for text in said if text]


def listed(fit: Fit) -> ListedBitstream:
    image, said = fit.image, dict(fit.image.properties)
    if 'accel:function_id' in said:
        said['function_uuid'] = said['accel:function_id']
    return ListedBitstream(
        image_uuid=image.id,
        image_name=None if image.name is None else shown(image.name),
        size=image.size,
        properties={key: shown(said[key]) for key in SHOWN if said.get(key)},
        reasons=fit.reasons,
    )
