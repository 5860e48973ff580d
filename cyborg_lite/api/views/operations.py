# SPDX-License-Identifier: Apache-2.0
"""Operations, and what waits for an operator, in the responses of the API."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Final

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.views.arqs import select_reason
from cyborg_lite.api.views.shapes import (
    TEXT_OR_NULL,
    UUID,
    Json,
    Shape,
    enum_of,
    nullable,
    optional,
    source,
)
from cyborg_lite.api.views.view import LINKS, ListView, View
from cyborg_lite.model.attention import AttentionItem, AttentionKind, Severity
from cyborg_lite.model.bitstreams.bitstreams import ProgramState, ProgramStep
from cyborg_lite.model.operations import (
    Operation,
    OperationKind,
    OperationState,
    SubjectType,
)

_OBJECT: Final = Json(str, type='object')
_SUBJECT_PATHS: Final[Mapping[SubjectType, str]] = {
    SubjectType.INSTANCE: 'v2/accelerator_requests?instance=',
    SubjectType.ARQ: 'v2/accelerator_requests/',
    SubjectType.DEVICE: 'v2/devices/',
    SubjectType.DEPLOYABLE: 'v2/deployables/',
}
_JOB_STATES: Final[Mapping[OperationState, ProgramState]] = {
    OperationState.SUCCEEDED: ProgramState.DONE,
    OperationState.FAILED: ProgramState.FAILED,
    OperationState.CANCELLED: ProgramState.FAILED,
}


class JobView(View):
    """A programming job; ``reason`` says why it failed or waits.

    ``progress`` is in percent.
    """

    _path = 'v2/jobs/{uuid}'

    uuid = UUID
    deployable_uuid = source('subject_id', UUID)
    image_uuid = UUID
    state = enum_of(ProgramState)
    step = enum_of(ProgramStep)
    progress = Shape(int, minimum=0, maximum=100)
    reason = TEXT_OR_NULL
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)

    @staticmethod
    def render_image_uuid(operation: Operation, call: Call) -> str:
        """Return the image to load."""
        return str(operation.parameters['image_uuid'])

    @staticmethod
    def render_state(operation: Operation, call: Call) -> ProgramState:
        """Return the state in the words of 2.4."""
        return _JOB_STATES.get(operation.state, ProgramState.RUNNING)

    @staticmethod
    def render_step(operation: Operation, call: Call) -> str:
        """Return the last step."""
        if operation.state is OperationState.SUCCEEDED:
            return ProgramStep.LOADED
        return _find_last(operation).get('name', ProgramStep.ACCEPTED)

    @staticmethod
    def render_reason(operation: Operation, call: Call) -> str:
        """Return why the job failed, or why its last step waits."""
        if operation.has_ended:
            return operation.reason
        return _find_last(operation).get('reason', '')


def _find_last(operation: Operation) -> Mapping[str, str]:
    return operation.steps[-1] if operation.steps else {}


class SubjectView(View):
    """An object; ``id`` is a uuid, or the name of a host."""

    kind = source('subject_type', enum_of(SubjectType))
    id = source('subject_id', str)


class StepView(View):
    """A step of an operation; ``reason`` says why the operation waited."""

    name = str
    at = Shape(str, format='date-time')
    reason = nullable(str)


class OperationView(View):
    """Work that continues after a response, from its request to its end.

    ``progress`` is in percent. ``reason`` says why the operation failed or waits.
    ``parameters`` is what the client requested, and ``result`` what the operation found
    or made.
    """

    _path = 'v2/operations/{uuid}'

    uuid = UUID
    kind = enum_of(OperationKind)
    state = enum_of(OperationState)
    subject = nullable(SubjectView)
    parameters = _OBJECT
    project_id = nullable(str)
    user_id = nullable(str)
    request_id = nullable(str)
    progress = Shape(int, minimum=0, maximum=100)
    steps = [StepView]
    reason = nullable(str)
    error_code = nullable(str)
    result = nullable(_OBJECT)
    links = LINKS
    created_at = datetime
    started_at = nullable(datetime)
    ended_at = nullable(datetime)

    @staticmethod
    def render_subject(operation: Operation, call: Call) -> Operation | None:
        """Return the operation if it has a subject."""
        return operation if operation.subject_type else None

    @staticmethod
    def render_steps(operation: Operation, call: Call) -> Iterator[SimpleNamespace]:
        """Return the steps with the reasons in the words for the caller."""
        for step in operation.steps:
            code = step.get('error_code') or None
            reason = select_reason(step['reason'] or None, code, call)
            yield SimpleNamespace(name=step['name'], at=step['at'], reason=reason)

    @staticmethod
    def render_reason(operation: Operation, call: Call) -> str | None:
        """Return the reason in the words for the caller."""
        return select_reason(operation.reason or None, operation.error_code, call)

    @staticmethod
    def render_links(operation: Operation, call: Call) -> list[dict[str, str]]:
        """Return links to the operation and to its subject."""
        links = call.links.build_self_links(f'v2/operations/{operation.uuid}')
        path = _SUBJECT_PATHS.get(operation.subject_type)
        if path is not None:
            href = call.links.build_url(f'{path}{operation.subject_id}')
            links.append({'href': href, 'rel': 'subject'})
        return links


class OperationList(ListView):
    """A page of operations, oldest first."""

    operations = [OperationView]
    operations_links = optional(LINKS)


class NamedSubjectView(SubjectView):
    """An object, and its name for people."""

    name = source('subject_name', str)


class AttentionView(View):
    """Something that waits for an operator.

    ``since`` is null if the time is not known, and ``hostname`` if the item belongs to
    no host.
    """

    kind = enum_of(AttentionKind)
    severity = enum_of(Severity)
    since = nullable(datetime)
    hostname = TEXT_OR_NULL
    subject = NamedSubjectView
    reason = str
    command = str

    @staticmethod
    def render_subject(item: AttentionItem, call: Call) -> AttentionItem:
        """Return the item, which has the fields of its subject."""
        return item


class AttentionList(View):
    """Everything that waits for an operator, the most severe kinds first."""

    _path = 'v2/attention'

    attention = [AttentionView]
    links = LINKS
