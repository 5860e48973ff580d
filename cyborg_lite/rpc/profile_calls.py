# SPDX-License-Identifier: Apache-2.0
"""The part of the conductor's interface that is about device profiles."""

from collections.abc import Sequence

from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.explanations import Explanation
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller


class ProfileCalls:
    """A profile that the caller may not see is none to all of them."""

    _caller: Caller

    def create_device_profiles(
        self,
        context: RequestContext,
        profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        """Keep all of them or none; their ``created_at`` is set by the database.

        :param possible: refuse those that no device could ever serve
        :raises DeviceProfileExists: a name or a uuid is taken
        :raises ImpossibleDeviceProfile: one can never fit
        """
        answer = self._caller.call(
            context,
            'create_device_profiles',
            since='1.0',
            profiles=wire.dump(list(profiles)),
            possible=possible,
        )
        return wire.load_all(DeviceProfile, answer)

    def list_device_profiles(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceProfile, ...]:
        """Filters: ``name``, which former names fit too, ``uuid``, ``enabled`` and
        ``is_public``."""
        answer = self._caller.call(
            context, 'list_device_profiles', since='1.0', query=wire.dump(query)
        )
        return wire.load_all(DeviceProfile, answer)

    def change_device_profile(
        self,
        context: RequestContext,
        uuid: str,
        change: ProfileChange,
        *,
        possible: bool = False,
    ) -> DeviceProfile:
        """The profile as it is then; a name that it loses goes on finding it.

        :param possible: refuse groups that no device could ever serve
        :raises DeviceProfileNotFound: no such profile
        :raises ImpossibleDeviceProfile: it could never fit
        :raises DeviceProfileExists: the new name is or was another's
        """
        answer = self._caller.call(
            context,
            'change_device_profile',
            since='1.0',
            uuid=uuid,
            change=wire.dump(change),
            possible=possible,
        )
        return wire.load(DeviceProfile, answer)

    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> Explanation:
        """Why it fits or does not, host by host.

        :param hostname: the only host to tell of; None: all
        :raises DeviceProfileNotFound: no such profile
        """
        answer = self._caller.call(
            context,
            'explain_device_profile',
            since='1.0',
            uuid=uuid,
            hostname=hostname,
        )
        return wire.load(Explanation, answer)

    def delete_device_profiles(
        self, context: RequestContext, names: Sequence[str]
    ) -> None:
        """All of them or none; each is a name or a uuid.

        :raises DeviceProfileNotFound: one is unknown
        :raises DeviceProfileInUse: an ARQ was made from one
        """
        self._caller.call(
            context, 'delete_device_profiles', since='1.0', names=list(names)
        )

    def list_profile_access(
        self, context: RequestContext, uuid: str
    ) -> tuple[str, ...]:
        """The projects that see a profile which is not public.

        :raises DeviceProfileNotFound: no such profile
        """
        answer = self._caller.call(
            context, 'list_profile_access', since='1.0', uuid=uuid
        )
        return tuple(map(str, answer))

    def grant_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> tuple[str, ...]:
        """All that see it then.

        :raises DeviceProfileNotFound: no such profile
        """
        answer = self._caller.call(
            context,
            'grant_profile_access',
            since='1.0',
            uuid=uuid,
            projects=list(projects),
        )
        return tuple(map(str, answer))

    def revoke_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        """Who does not see it is passed over.

        :raises DeviceProfileNotFound: no such profile
        """
        self._caller.call(
            context,
            'revoke_profile_access',
            since='1.0',
            uuid=uuid,
            projects=list(projects),
        )
