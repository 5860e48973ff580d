# SPDX-License-Identifier: Apache-2.0
"""Errors of ARQs, their binds and their attach handles."""

from cyborg_lite.errors.base import (
    Conflict,
    CyborgError,
    Forbidden,
    InvalidInput,
    NotFound,
)


class InvalidPatch(InvalidInput):
    """The JSON patch of ARQs is malformed or not allowed."""

    message = 'Invalid ARQ patch: {reason}'


class InstanceHasArqs(InvalidInput):
    """ARQs cannot be bound because the instance already has ARQs."""

    message = 'Instance {instance} already has ARQs.'
    advice = 'Delete the ARQs of the instance before binding new ARQs.'


class ArqNotFound(NotFound):
    """The ARQ does not exist, or the caller may not see it."""

    message = 'ARQ {uuid} not found.'


class ArqStateConflict(Conflict):
    """The state of the ARQ does not allow the event."""

    message = 'Cannot {event} an ARQ in state {state}.'


class InstanceBindFailed(Conflict):
    """An ARQ of the instance has failed, so Nova must not start the instance.

    Nova below microversion 2.4 accepts failed ARQs, and would start the instance
    without the accelerator.
    """

    message = (
        'Instance {instance} must not be started: its ARQs {arqs} have no '
        'accelerator. {reason} Delete the instance, or shelve and unshelve it to '
        'request new accelerators.'
    )
    advice = (
        'Remove the cause, or set [api] refuse_failed_binds = false to start '
        'instances without their accelerators.'
    )


class InstanceDeviceLost(Conflict):
    """A device of the instance is gone or failed, so Nova must not start it."""

    message = (
        'Instance {instance} must not be started: host {host} has lost the devices of '
        'its ARQs {arqs}. {reason} Shelve and unshelve the instance to request new '
        'accelerators, or delete it.'
    )
    advice = (
        'Put the device back; the ARQs then become usable again. Run '
        '`openstack accelerator attention list` to list the instances. Set [api] '
        'refuse_failed_binds = false to start instances without their accelerators.'
    )


class ArqsNotResolved(CyborgError):
    """Bind jobs of the instance are still running."""

    code = 423
    message = 'The ARQs of instance {instance} are not resolved yet.'
    advice = 'Retry after a few seconds: bind jobs of the instance are still running.'


class PowerOnHeld(CyborgError):
    """The devices of an instance are not rebuilt yet, so Nova must not start it.

    Microversions below 2.4 have no ARQ state for this condition. Their clients, Nova
    among them, would start the instance without its devices.
    """

    code = 423
    message = (
        'Instance {instance} must not be started now: host {host} has not confirmed '
        'the devices of its ARQs {arqs}.'
    )
    advice = (
        'Start cyborg-lite-agent on {host} and wait until it has rebuilt the devices, '
        'or set [api] hold_power_on = false to start instances without the devices.'
    )


class InstanceNotSpawned(CyborgError):
    """Nova has not spawned an instance yet. The job is postponed."""

    code = 503
    message = 'Nova has not spawned instance {instance} yet.'
    advice = 'Wait until the instance is active, or check it in Nova.'


class NoFreeHandle(CyborgError):
    """The provider is unknown, gone, unusable or exhausted. The bind fails."""

    code = 409
    message = '{reason}'
    advice = (
        'Compare `openstack accelerator device list` with Placement, then create the '
        'instance again.'
    )


class AllocationTooSmall(NoFreeHandle):
    """The ARQs request more units than the instance has allocated. The bind fails."""

    message = (
        'The ARQs request {requested} units of {name} on resource provider '
        '{provider}, and the instance has {allocated} allocated.'
    )
    advice = 'Create the instance again: its device profile has changed meanwhile.'


class HostMismatch(NoFreeHandle):
    """The chosen host is not that of the chosen provider. The bind fails."""

    message = 'Resource provider {provider} is of host {actual}, not of {host}.'
    advice = 'Set the host name of the agent to the node name in Nova.'


class ProviderMismatch(NoFreeHandle):
    """The chosen provider does not satisfy the group of the ARQ. The bind fails."""

    message = 'Resource provider {provider} does not match group {group}: {reason}.'
    advice = 'Create the instance again: the device or its profile has changed.'


class HandleNotAttachable(CyborgError):
    """Nova would drop or break the handle. The bind fails."""

    code = 409
    message = '{reason}'
    advice = (
        'Set [nova] attaches_mdev or attaches_unmanaged if Nova attaches the handle.'
    )


class HandlesContended(CyborgError):
    """Enough handles exist, but other transactions have locked them. Retry."""

    code = 409
    message = 'Other transactions are claiming the free attach handles.'


class BindExpired(CyborgError):
    """The bind did not succeed before its deadline."""

    code = 409
    message = 'The bind exceeded its deadline: {reason}'
    advice = 'Remove the cause, or raise [conductor] bind_deadline.'


class BindStopped(CyborgError):
    """An operator cancelled the job of the bind."""

    code = 409
    message = '{reason}'
    advice = 'Create the instance again.'


class DeviceNotRebuilt(CyborgError):
    """The host could not rebuild the device after a reboot."""

    code = 409
    message = '{reason}'
    advice = (
        'Check the device and the log of the agent, then create the instance again.'
    )


class BindCancelled(CyborgError):
    """The ARQ was unbound or deleted during the bind."""

    code = 409
    message = 'The ARQ was unbound or deleted during the bind.'


class BindAbandoned(BindCancelled):
    """The ARQ was unbound or deleted, because an attempt at the bind failed before."""

    message = 'The ARQ was unbound or deleted during the bind. Before that: {cause}'
    advice = 'Run `openstack accelerator attention list`, and remove the cause.'


class HandlesNotConfirmed(CyborgError):
    """An agent has not confirmed exactly the attach handles of a bind. Retry."""

    code = 409
    message = 'The agent has not confirmed exactly the attach handles of ARQs {arqs}.'
    advice = 'See the log of the agent; upgrade agents before conductors.'


class UnitsBeingCleaned(HandlesContended):
    """Enough handles exist, but hosts are still releasing or cleaning them. Retry."""

    message = (
        'Units of resource provider {provider} that the host is still cleaning: '
        '{number}.'
    )
    advice = (
        'Create the instance again after the cleaning run. If it does not end, ask the '
        'operator to run `openstack accelerator attention list`.'
    )


class UnitAllocated(CyborgError):
    """An instance that has no ARQ may use a unit that the database shows as unused."""

    code = 409
    message = (
        'Resource provider {provider} is allocated to instances without an ARQ: '
        '{instances}.'
    )
    advice = 'Run `cyborg-lite-manage audit`; delete each instance or its allocation.'


class UsageTooLarge(InvalidInput):
    """The sums of a usage query exceed what one answer may contain."""

    message = 'The answer would contain more than {limit} sums.'
    advice = 'Set the argument project, or a shorter period with start and end.'


class ProjectLimitExceeded(Forbidden):
    """A project would use more than its limits allow.

    The limits are those in Keystone, and [limits] max_unbound_requests.
    """

    message = 'Project {project} would exceed its limits: {excesses}.'
    advice = (
        'Delete ARQs that no instance uses, or instances with accelerators, or ask an '
        'administrator to raise the limits of the project.'
    )
