# SPDX-License-Identifier: Apache-2.0
"""What Placement has allocated to servers, as far as a bind asks for it."""

from cyborg_lite.clients.placement import Consumer
from cyborg_lite.exceptions import ServiceUnavailable


class FakeConsumers:
    """Servers and their allocations."""

    def __init__(self) -> None:
        self.away = False
        self._consumers: dict[str, Consumer] = {}

    def allocate(self, instance: str, providers: list[str], project: str) -> None:
        self._consumers[instance] = Consumer(
            uuid=instance,
            project_id=project,
            user_id='user',
            generation=1,
            allocations={uuid: {'PGPU': 1} for uuid in providers},
        )

    def forget(self, instance: str) -> None:
        """As when the scheduler, or Nova's clean-up, took its allocation away."""
        del self._consumers[instance]

    def consumers_of(self, provider: str) -> frozenset[str]:
        if self.away:
            raise ServiceUnavailable(what='Placement')
        return frozenset(
            uuid
            for uuid, consumer in self._consumers.items()
            if provider in consumer.providers
        )

    def consumer(self, uuid: str) -> Consumer | None:
        if self.away:
            raise ServiceUnavailable(what='Placement')
        return self._consumers.get(uuid)
