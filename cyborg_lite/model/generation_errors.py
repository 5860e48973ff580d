# SPDX-License-Identifier: Apache-2.0
"""Errors about generations of objects."""

from cyborg_lite.exceptions import Conflict


class GenerationConflict(Conflict):
    """The object has changed since the client read it."""

    message = 'The generation of {uuid} is not {generation}: the object has changed.'
    advice = 'Read the object again, and repeat the change with its generation.'
