# SPDX-License-Identifier: Apache-2.0
"""The part of the conductor in memory that keeps accelerator requests."""

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
from cyborg_lite.model.device_profiles import DeviceProfile, arq_count
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.fakes.conductor_profiles import ProfilesInMemory
from tests.fakes.queries import page

HANDLE = {'domain': '0000', 'bus': '0c', 'device': '00', 'function': '0'}


class RequestsInMemory(ProfilesInMemory):
    """Binds at once, unless told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.arqs: dict[str, Arq] = {}
        self.steps: dict[str, list[Step]] = {}  # by request
        self.former: dict[str, str] = {}  # profiles by servers that gave them back
        self.returning: set[str] = set()  # requests for such servers
        self.images: list[str | None] = []  # that were named with a profile
        self.binds_at_once = True  # False: binds stay under way

    def _in_use(self, profile: DeviceProfile) -> bool:
        names = {arq.device_profile_name for arq in self.arqs.values()}
        return profile.name in names

    # --- accelerator requests ---

    def create_arqs(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> tuple[Arq, ...]:
        self._heard(context)
        self.images.append(image_uuid)
        profile = self.profile_called(context, device_profile_name)
        returning = not profile.enabled
        awaited = context.service_request and profile.name in self.former.values()
        if returning and not awaited:
            raise DeviceProfileDisabled(name=device_profile_name)
        made = tuple(
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
            for _ in range(arq_count(group))
        )
        if not made:
            raise EmptyDeviceProfile(name=profile.name)
        self.arqs.update({arq.uuid: arq for arq in made})
        self.returning.update(arq.uuid for arq in made if returning)
        return made

    def list_arqs(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        self._heard(context)
        named = 'instance_uuid' in query.filters or 'uuid' in query.filters
        return page(self._seen(context, named), query)

    def list_arq_steps(self, context: RequestContext, uuid: str) -> tuple[Step, ...]:
        self._heard(context)
        self._known(context, [uuid])
        return tuple(self.steps.get(uuid, ()))

    def _seen(self, context: RequestContext, named: bool = True) -> list[Arq]:
        scope = Scope(
            project_id=None if 'admin' in context.roles else context.project_id,
            of_instances=named and context.service_request,
        )
        return [
            arq
            for arq in self.arqs.values()
            if scope.covers(arq.project_id, arq.instance_uuid)
        ]

    def _known(self, context: RequestContext, uuids: Sequence[str]) -> list[Arq]:
        seen = {arq.uuid: arq for arq in self._seen(context)}
        for uuid in uuids:
            if uuid not in seen:
                raise ArqNotFound(uuid=uuid)
        return [seen[uuid] for uuid in uuids]

    def bind_arqs(
        self, context: RequestContext, bindings: Mapping[str, Binding]
    ) -> None:
        self._heard(context)
        self._check_service(context)
        found = self._known(context, list(bindings))
        instances = {binding.instance_uuid for binding in bindings.values()}
        for arq in self.arqs.values():
            if arq.instance_uuid in instances and arq.uuid not in bindings:
                raise InstanceHasArqs(instance=arq.instance_uuid)
        for arq in found:
            mine = {self.former.get(instance) for instance in instances}
            if arq.uuid in self.returning and arq.device_profile_name not in mine:
                raise DeviceProfileDisabled(name=arq.device_profile_name)
        bound = [self._bound(context, arq, bindings[arq.uuid]) for arq in found]
        self.arqs.update({arq.uuid: arq for arq in bound})

    def _bound(self, context: RequestContext, arq: Arq, binding: Binding) -> Arq:
        state = arq_model.after(arq.state, Event.BIND)
        if self.binds_at_once:
            state = arq_model.after(state, Event.SUCCEED)
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
        self._heard(context)
        self._check_service(context)
        for arq in self._known(context, uuids):
            self.arqs[arq.uuid] = dataclasses.replace(
                arq,
                state=arq_model.after(arq.state, Event.UNBIND),
                hostname=None,
                device_rp_uuid=None,
                instance_uuid=None,
                attach_handle_uuid=None,
                attach_handle_type=None,
                attach_handle_info={},
                updated_at=self.now(),
            )

    def delete_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        self._heard(context)
        seen = {arq.uuid: arq for arq in self._seen(context)}
        existing = [uuid for uuid in uuids if uuid in seen]
        if any(seen[uuid].instance_uuid for uuid in existing):
            self._check_service(context)
        for uuid in existing:
            del self.arqs[uuid]
        missing = [uuid for uuid in uuids if uuid not in seen]
        if missing:
            raise ArqNotFound(uuid=', '.join(missing))

    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        self._heard(context)
        self._check_service(context)
        for arq in self._seen(context):
            if arq.instance_uuid == instance:
                self.former[instance] = arq.device_profile_name
                del self.arqs[arq.uuid]

    def _check_service(self, context: RequestContext) -> None:
        if not context.service_request:
            raise ServiceTokenRequired(action='This')
