# SPDX-License-Identifier: Apache-2.0
"""Workers that perform the actions of a schedule."""

import threading
from collections.abc import Sequence

from tests.chaos.history.client import Client, Slot
from tests.chaos.history.schedule import Action


class Worker:
    """Performs actions in a thread until it is stopped."""

    def __init__(
        self, client: Client, actions: Sequence[Action], slots: Sequence[Slot]
    ) -> None:
        self._client = client
        self._actions = actions
        self._slots = slots
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def join(self) -> None:
        """Wait for the last action; raise the error that ended the worker."""
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            for action in self._actions:
                if self._over.wait(action.pause):
                    return
                self._client.perform(action, self._slots[action.slot])
        except Exception as error:  # noqa: BLE001  # join() raises it
            self.error = error
