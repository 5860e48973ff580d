# SPDX-License-Identifier: Apache-2.0
"""Errors of bitstreams and their loading."""

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.drivers import DriverError


class BitstreamRefused(DriverError):
    """The bitstream does not fit the region. The device was not changed."""

    code = 409
    message = 'Bitstream {image} is refused: {reason}'
    advice = 'Correct the properties of the image, or use another image.'


class BitstreamNotFound(DriverError):
    """No image in Glance matches the requested bitstream."""

    code = 404
    message = 'Bitstream not found: {reason}'
    advice = 'Run `openstack image list --tag FPGA` to see the available bitstreams.'


class LoadingFailed(DriverError):
    """Loading failed part-way. The content of the region is undefined."""

    message = 'Loading bitstream {image} failed: {reason}'
    advice = 'Check the log of the agent, then program the deployable again.'


class ProgrammingTimedOut(CyborgError):
    """Programming is still running when the API stops waiting. The job continues."""

    code = 504
    message = 'Programming of deployable {uuid} has not completed yet.'
    advice = 'Show the deployable later to see the result.'
