# SPDX-License-Identifier: Apache-2.0
"""Bitstreams for the FPGAs of the sample hosts, as images of an image service."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Image by the trait of the resource providers that it fits.
IMAGES: Final = {
    'CUSTOM_FPGA_REGION_INTEL_69528DB6EB31577A8C3668F9FAA081F6': (
        'd5ca2f11-3108-4426-a11c-a959987565df'
    ),
    'CUSTOM_FPGA_PRODUCT_ID_5004': '0b6f3c1e-7a52-4d0e-9a8b-5d1f0c2e4a90',
}
_INTEL, _XILINX = IMAGES.values()
_U250_SHELL: Final = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'


def find_image(traits: Sequence[str]) -> str | None:
    """Return the image that fits a resource provider with these traits, or None."""
    return next((IMAGES[trait] for trait in traits if trait in IMAGES), None)


def store(directory: Path) -> None:
    """Write the images to the directory of the image service."""
    # Importable only in the virtual environment.
    from tests.builders import bitstream_files
    from tests.doubles.image_service import store_image

    intel = bitstream_files.gbs()
    store_image(directory, bitstream_files.image(intel, id=_INTEL), intel)
    xilinx = bitstream_files.xclbin(_U250_SHELL, bitstream_files.OTHER_FUNCTION)
    properties = {
        'vendor': 'xilinx',
        'board': 'u250',
        'version': '4.1',
        'shell_id': _U250_SHELL,
        'region_uuid': _U250_SHELL,
    }
    image = bitstream_files.image(
        xilinx, id=_XILINX, name='loopback for U250', properties=properties
    )
    store_image(directory, image, xilinx)
