# SPDX-License-Identifier: Apache-2.0
"""Memory of the agent about the database of the conductors."""

from pathlib import Path

from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark


class RememberedMark:
    """The latest mark that a conductor has told, in ``database.json``.

    A conductor compares it with the database, which may have been restored.
    """

    def __init__(self, directory: Path) -> None:
        """Read the file.

        :param directory: of the state of the agent
        """
        self._file = StateFile(directory / 'database.json', DatabaseMark)
        self.mark = self._file.read() or NO_MARK

    def remember(self, mark: DatabaseMark) -> None:
        """Store a mark, unless a later one is remembered.

        Conductors read the marks that they tell at different times.
        """
        merged = self.mark.merge(mark)
        if merged != self.mark:
            self.mark = merged
            self._file.write(merged)
