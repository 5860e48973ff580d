# SPDX-License-Identifier: Apache-2.0
"""ARQs of the in-memory conductor."""

import dataclasses
from collections.abc import Mapping, Sequence
from uuid import uuid4

from cyborg_lite.exceptions import (
    ArqNotFound,
    DeviceProfileDisabled,
    EmptyDeviceProfile,
    InstanceHasArqs,
    ServiceTokenRequired,
)
from cyborg_lite.model import arqs as arq_model
from cyborg_lite.model.arqs import Arq, Binding, Event, Scope, State, Step
from cyborg_lite.model.device_profiles import DeviceProfile, Group
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.conductor_profiles import ProfilesInMemory
from tests.doubles.paging import page

HANDLE = {'domain': '0000', 'bus': '0c', 'device': '00', 'function': '0'}


class ArqsInMemory(ProfilesInMemory):
    """Conductor that binds at once, unless ``binds_at_once`` is False."""

    def __init__(self) -> None:
        super().__init__()
        self.arqs: dict[str, Arq] = {}
        self.steps: dict[str, list[Step]] = {}  # by uuid of the ARQ
        self.former: dict[str, str] = {}  # profile uuid by instance
        self.returning: set[str] = set()  # uuids of ARQs of such instances
        self.images: list[str | None] = []  # image uuids that callers gave
        self.binds_at_once = True  # False: binds stay in progress

    def _in_use(self, profile: DeviceProfile) -> bool:
        names = {arq.device_profile_name for arq in self.arqs.values()}
        return profile.name in names

    # --- ARQs ---

    def create_arqs(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> tuple[Arq, ...]:
        self._record_call(context)
        self.images.append(image_uuid)
        profile = self.profile_called(context, device_profile_name)
        returning = not profile.enabled
        awaited = context.service_request and profile.name in self.former.values()
        if returning and not awaited:
            raise DeviceProfileDisabled(name=device_profile_name)
        created = tuple(
            Arq(
                uuid=str(uuid4()),
                state=State.INITIAL,
                device_profile_name=profile.name,
                device_profile_group_id=index,
                device_profile_group=group,
                created_at=self.now(),
                project_id=context.project_id,
            )
            for index, group in enumerate(profile.groups)
            for _ in range(Group.parse(group).requirements.arq_count)
        )
        if not created:
            raise EmptyDeviceProfile(name=profile.name)
        self.arqs.update({arq.uuid: arq for arq in created})
        self.returning.update(arq.uuid for arq in created if returning)
        return created

    def list_arqs(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        self._record_call(context)
        is_filtered = 'instance_uuid' in query.filters or 'uuid' in query.filters
        return page(self._visible_arqs(context, is_filtered), query)

    def list_arq_steps(self, context: RequestContext, uuid: str) -> tuple[Step, ...]:
        self._record_call(context)
        self._find_arqs(context, [uuid])
        return tuple(self.steps.get(uuid, ()))

    def _visible_arqs(
        self, context: RequestContext, is_filtered: bool = True
    ) -> list[Arq]:
        scope = Scope(
            project_id=None if context.is_admin else context.project_id,
            of_instances=is_filtered and context.service_request,
        )
        return [
            arq
            for arq in self.arqs.values()
            if scope.covers(arq.project_id, arq.instance_uuid)
        ]

    def _find_arqs(self, context: RequestContext, uuids: Sequence[str]) -> list[Arq]:
        visible = {arq.uuid: arq for arq in self._visible_arqs(context)}
        for uuid in uuids:
            if uuid not in visible:
                raise ArqNotFound(uuid=uuid)
        return [visible[uuid] for uuid in uuids]

    def bind_arqs(
        self, context: RequestContext, bindings: Mapping[str, Binding]
    ) -> None:
        self._record_call(context)
        self._check_service(context)
        known_arqs = self._find_arqs(context, list(bindings))
        instances = {binding.instance_uuid for binding in bindings.values()}
        replaced: list[str] = []
        for arq in self.arqs.values():
            is_failed = arq.state is State.BIND_FAILED
            if arq.instance_uuid in instances and arq.uuid not in bindings:
                if not is_failed:
                    raise InstanceHasArqs(instance=arq.instance_uuid)
                replaced.append(arq.uuid)
        for arq in known_arqs:
            profile_uuids = {self.former.get(instance) for instance in instances}
            if (
                arq.uuid in self.returning
                and arq.device_profile_name not in profile_uuids
            ):
                raise DeviceProfileDisabled(name=arq.device_profile_name)
        bound = [self._bound(context, arq, bindings[arq.uuid]) for arq in known_arqs]
        for uuid in replaced:
            del self.arqs[uuid]
        self.arqs.update({arq.uuid: arq for arq in bound})

    def _bound(self, context: RequestContext, arq: Arq, binding: Binding) -> Arq:
        state = arq_model.next_state(arq.state, Event.BIND)
        if self.binds_at_once:
            state = arq_model.next_state(state, Event.SUCCEED)
        return dataclasses.replace(
            arq,
            state=state,
            hostname=binding.hostname,
            device_rp_uuid=binding.device_rp_uuid,
            instance_uuid=binding.instance_uuid,
            project_id=binding.project_id or arq.project_id,
            attach_handle_uuid=str(uuid4()),
            attach_handle_type='PCI',
            attach_handle_info=HANDLE,
            updated_at=self.now(),
        )

    def unbind_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        self._record_call(context)
        self._check_service(context)
        for arq in self._find_arqs(context, uuids):
            self.arqs[arq.uuid] = dataclasses.replace(
                arq,
                state=arq_model.next_state(arq.state, Event.UNBIND),
                hostname=None,
                device_rp_uuid=None,
                instance_uuid=None,
                attach_handle_uuid=None,
                attach_handle_type=None,
                attach_handle_info={},
                updated_at=self.now(),
            )

    def delete_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        self._record_call(context)
        visible = {arq.uuid: arq for arq in self._visible_arqs(context)}
        existing = [uuid for uuid in uuids if uuid in visible]
        if any(visible[uuid].instance_uuid for uuid in existing):
            self._check_service(context)
        for uuid in existing:
            del self.arqs[uuid]
        missing = [uuid for uuid in uuids if uuid not in visible]
        if missing:
            raise ArqNotFound(uuid=', '.join(missing))

    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        self._record_call(context)
        self._check_service(context)
        for arq in self._visible_arqs(context):
            if arq.instance_uuid == instance:
                self.former[instance] = arq.device_profile_name
                del self.arqs[arq.uuid]

    def _check_service(self, context: RequestContext) -> None:
        if not context.service_request:
            raise ServiceTokenRequired(action='This')
