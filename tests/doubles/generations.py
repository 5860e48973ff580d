# SPDX-License-Identifier: Apache-2.0
"""Generations of the objects of the in-memory conductor."""

from typing import Any

from cyborg_lite.model.generation_errors import GenerationConflict


# Any: a data class that has a uuid and a generation.
def check_generation(record: Any, expected: int | None) -> None:
    """Check that an object has the expected generation; None: any."""
    if expected not in (None, record.generation):
        raise GenerationConflict(uuid=record.uuid, generation=expected)
