# SPDX-License-Identifier: Apache-2.0
"""Errors about the use of units by projects and its limits."""

from cyborg_lite.exceptions import Forbidden, InvalidInput


class UsageTooLarge(InvalidInput):
    """The sums of a usage query exceed what one answer may contain."""

    message = 'The answer would contain more than {limit} sums.'
    advice = 'Set the argument project, or a shorter period with start and end.'


class ProjectLimitExceeded(Forbidden):
    """A project would use more than its limits in Keystone allow."""

    message = 'Project {project} would exceed its limits: {excesses}.'
    advice = (
        'Delete instances with accelerators, or ask an administrator to raise the '
        'limits of the project in Keystone.'
    )
