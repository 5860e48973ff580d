# SPDX-License-Identifier: Apache-2.0
"""Error classes of the service, with HTTP code, text and advice for the operator.

``message`` and ``advice`` are templates, filled with the arguments of the constructor.
Clients may read ``text``: it never contains SQL, paths or secrets. The classes are in
the order of their HTTP codes; errors inside the service follow.
"""

from typing import ClassVar


class CyborgError(Exception):
    """Base class of all errors. RPC transfers an error by its class and fields."""

    code: ClassVar[int] = 500
    message: ClassVar[str] = 'The service failed to handle the request.'
    advice: str = 'Search the log of the conductor for the request id.'

    def __init__(self, *_args: object, **fields: object) -> None:
        # oslo.messaging rebuilds an error from `args`, not needed here, and `kwargs`.
        self.kwargs = fields
        text = self.message.format(**fields).encode(errors='replace').decode()
        self.text = text.replace('\0', '?')  # text that every database can store
        self.advice = self.advice.format(**fields)
        super().__init__(self.text)

    @property
    def full_text(self) -> str:
        """Text and advice. A text from a library may have no full stop."""
        return f'{self.text.removesuffix(".")}. {self.advice}'


class InvalidInput(CyborgError):
    """The request or message contains an invalid value."""

    code = 400
    message = '{reason}'
    advice = 'Correct the request.'


class InvalidDeviceProfile(InvalidInput):
    """The groups of a device profile violate the grammar or a limit."""

    message = 'Invalid device profile: {reason}'


class EmptyDeviceProfile(InvalidInput):
    """The device profile has no group that requests an accelerator."""

    message = 'Device profile {name} requests no accelerator.'


class InvalidPatch(InvalidInput):
    """The JSON patch of ARQs is malformed or not allowed."""

    message = 'Invalid ARQ patch: {reason}'


class InvalidDevicePatch(InvalidInput):
    """The JSON patch of a device is malformed or not allowed."""

    message = 'Invalid device patch: {reason}'


class InstanceHasArqs(InvalidInput):
    """ARQs cannot be bound because the instance already has ARQs."""

    message = 'Instance {instance} already has ARQs.'
    advice = 'Delete the ARQs of the instance before binding new ARQs.'


class Forbidden(CyborgError):
    """The caller is not allowed to perform the operation."""

    code = 403
    message = '{reason}'
    advice = 'Check the roles of the caller and the policy file.'


class PolicyForbids(Forbidden):
    """A policy rule rejects the caller."""

    message = "Policy doesn't allow {rule} to be performed."


class ServiceTokenRequired(Forbidden):
    """The operation on ARQs of an instance requires a service token, as Nova sends."""

    message = (
        '{action} requires a service token: accelerators of instances are managed '
        'through the Compute API.'
    )
    advice = (
        'Set [service_user] send_service_user_token = true in nova.conf and assign '
        'the service role to the user of Nova.'
    )


class NotFound(CyborgError):
    """The object does not exist, or the caller may not see it."""

    code = 404
    message = '{what} {name} not found.'
    advice = 'List the collection to see the existing objects.'


class DeviceProfileNotFound(NotFound):
    """The device profile does not exist, or the caller may not see it."""

    message = 'Device profile {name} not found.'


class ArqNotFound(NotFound):
    """The ARQ does not exist, or the caller may not see it."""

    message = 'ARQ {uuid} not found.'


class DeviceNotFound(NotFound):
    """The device does not exist, or the caller may not see it."""

    message = 'Device {uuid} not found.'


class HostNotFound(NotFound):
    """No agent or device of the host is known."""

    message = 'Host {host} not found.'
    advice = 'Run cyborg-lite-manage host list.'


class ServiceNotFound(NotFound):
    """No daemon has the uuid."""

    message = 'Service {uuid} not found.'


class DeployableNotFound(NotFound):
    """The deployable does not exist, or the caller may not see it."""

    message = 'Deployable {uuid} not found.'


class JobNotFound(NotFound):
    """The job does not exist. Completed jobs are deleted."""

    message = 'Job {uuid} not found.'
    advice = 'Run `openstack accelerator job list`. Completed jobs are not listed.'


class AttributeNotFound(NotFound):
    """The attribute does not exist, or the caller may not see it."""

    message = 'Attribute {uuid} not found.'


class MethodNotAllowed(CyborgError):
    """The resource does not support the HTTP method."""

    code = 405
    message = 'The method {method} is not allowed for this resource.'


class NotAcceptable(CyborgError):
    """The microversion is malformed or not supported."""

    code = 406
    message = '{reason}'
    advice = 'Request a microversion in the range that the version document lists.'


class BodyTooLarge(CyborgError):
    """The request body exceeds the size limit."""

    code = 413
    message = 'The request body is larger than {limit} bytes.'


class UnsupportedMediaType(CyborgError):
    """The content type of the request is not JSON."""

    code = 415
    message = 'The request body must be application/json.'


class Conflict(CyborgError):
    """The current state of an object does not allow the operation."""

    code = 409
    message = '{reason}'
    advice = 'Check the state of the object, then retry.'


class DeviceProfileExists(Conflict):
    """A device profile with the same name exists."""

    message = 'Device profile {name} already exists.'


class DeviceProfileDisabled(Conflict):
    """A new instance cannot use the device profile because it is disabled."""

    message = (
        'Device profile {name} is disabled. Only instances that already used it can '
        'be unshelved or evacuated.'
    )
    advice = 'Use another flavor, or enable the device profile.'


class ImpossibleDeviceProfile(Conflict):
    """No provider of any host could serve a group of the device profile."""

    message = 'Device profile {name} can never fit. {reason}'
    advice = (
        'Request resources that a single provider has, or set [api] '
        'refuse_impossible_profiles = false.'
    )


class DeviceProfileInUse(Conflict):
    """The device profile cannot be deleted or changed while ARQs use it."""

    message = 'Device profile {name} is in use by ARQs.'
    advice = 'Delete the instances that use the device profile first.'


class AttributeExists(Conflict):
    """The deployable already has an attribute with the same key."""

    message = 'Attribute {key} of deployable {deployable} already exists.'
    advice = 'Delete the attribute first.'


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


class HostInUse(Conflict):
    """ARQs of instances use the host, so it cannot be forgotten."""

    message = 'Host {host} is in use by ARQs {arqs}.'
    advice = (
        'Run `cyborg-lite-manage host disable {host}`, then move or delete the '
        'instances.'
    )


class ServiceAlive(Conflict):
    """The daemon is up and would register again."""

    message = '{binary} on {host} is up.'
    advice = 'Stop {binary} on {host}, and wait for [conductor] agent_down_after.'


class InstanceDeviceLost(Conflict):
    """A device of the instance is gone or failed, so Nova must not start it."""

    message = (
        'Instance {instance} must not be started: host {host} has lost the devices of '
        'its ARQs {arqs}. {reason} Shelve and unshelve the instance to request new '
        'accelerators, or delete it.'
    )
    advice = (
        'Put the device back; the ARQs then become usable again. Run '
        'cyborg-lite-manage device impact to list the instances. Set [api] '
        'refuse_failed_binds = false to start instances without their accelerators.'
    )


class JobRefused(Conflict):
    """The job cannot be retried or cancelled."""

    message = 'Job {job} was not changed: {reason}'
    advice = 'Run `openstack accelerator job list` to see the state of the job.'


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


class ServiceUnavailable(CyborgError):
    """A service on which the request depends does not answer. A retry may succeed."""

    code = 503
    message = 'The service is unavailable: {what} does not answer.'
    advice = 'Check that {what} is running and reachable from this host.'


class MessageRefused(ServiceUnavailable):
    """A message between two daemons has no valid signature."""

    message = 'A message was refused: {reason}.'
    advice = (
        'Compare the message keys of both hosts; cyborg-lite-manage agent key prints '
        'the key of a host.'
    )


class DatabaseRefused(ServiceUnavailable):
    """The database server refuses the user, the password or the database name."""

    message = 'The database refuses the connection.'
    advice = 'Correct user, password and database name in [database] connection.'


class DatabaseError(CyborgError):
    """The database returned an error. The log of the conductor contains its text."""

    message = 'The database refused the request.'
    advice = (
        'Run cyborg-lite-dbsync upgrade. If the error persists, check the log of the '
        'conductor.'
    )


class RemoteError(CyborgError):
    """Another OpenStack service returned an unexpected error."""

    message = '{service} answered {status}: {reason}'
    advice = 'Search the log of {service} for the request id.'


class PlacementConflict(CyborgError):
    """The generation of the provider changed between read and write."""

    code = 409
    message = 'Resource provider {provider} was changed by another client.'


class HostSyncBusy(CyborgError):
    """Another worker does not finish the Placement sync job of the host in time."""

    code = 503
    message = 'Placement is not updated for host {host}: its sync job takes too long.'
    advice = 'Run `openstack accelerator job list` to see its error, then retry.'


class ProviderInUse(Conflict):
    """The provider cannot be deleted or reduced while allocations use it."""

    message = 'Resource provider {provider} has allocations or child providers.'
    advice = 'Run `openstack resource provider show --allocations {provider}`.'


class ProviderExists(Conflict):
    """Another provider uses the name or uuid."""

    message = 'Another resource provider already has the name or uuid of {name}.'


class ComputeNodeAbsent(CyborgError):
    """Placement has no root provider with the name of the host. The job is retried."""

    code = 503
    message = 'Placement has no compute node provider named {host}.'
    advice = (
        'Start nova-compute on {host}, or set [DEFAULT] host of its agent to the '
        'hypervisor hostname that Nova uses. If {host} is not a compute node, add it '
        'to [conductor] hosts_without_compute.'
    )


class DriverError(CyborgError):
    """A driver operation failed on one device. Other devices may work."""

    message = '{reason}'
    advice = 'Check the health of the device and the log of the agent.'


class DeviceBusy(DriverError):
    """Another process or an instance uses the device."""

    message = 'Device {address} is busy: {reason}'


class DeviceGone(DriverError):
    """The device was removed, or does not respond."""

    message = 'Device {address} does not answer.'


class ToolTimedOut(DriverError):
    """A host tool was killed at its timeout. The state of the device is unknown."""

    message = '{tool} timed out after {seconds} s and was killed.'


class ToolMissing(DriverError):
    """A host tool that the driver needs is not installed."""

    message = '{tool} is not installed on the host.'
    advice = 'Install {tool}, or set its path in the section of the driver.'


class BitstreamRefused(DriverError):
    """The bitstream does not fit the region. The device was not changed."""

    code = 409
    message = 'Bitstream {image} is refused: {reason}'
    advice = 'Correct the properties of the image, or use another image.'


class BitstreamNotFound(DriverError):
    """No image in Glance matches the requested bitstream."""

    code = 404
    message = 'Bitstream not found: {reason}'
    advice = 'Run `openstack image list --tag FPGA` to see the available bitstreams.'


class LoadingFailed(DriverError):
    """Loading failed part-way. The content of the region is undefined."""

    message = 'Loading bitstream {image} failed: {reason}'
    advice = 'Check the log of the agent, then program the deployable again.'


class DeployableInUse(Conflict):
    """The deployable cannot be programmed: an ARQ or a job uses it or its device."""

    message = 'Deployable {uuid} cannot be programmed: {reason}'
    advice = 'Delete the instances that use the device first.'


class DeviceHangs(DriverError):
    """A kernel call on the device did not return, and may still take effect later.

    The device must not be used until the call returns or the host is rebooted.
    """

    message = 'Device {address} hangs: {what} did not return within {seconds} s.'
    advice = 'Read the kernel log, then reload the vendor driver or reboot the host.'


class HostAway(CyborgError):
    """The agent of a host did not answer an RPC. The agent may have executed it."""

    # Daemons of earlier releases find the error of an RPC by the name of this class.
    code = 503
    message = 'The agent of host {host} does not answer.'
    advice = (
        'Start cyborg-lite-agent on {host}, or check its connection to the message bus.'
    )


class InstanceNotSpawned(CyborgError):
    """Nova has not spawned an instance yet. The job is postponed."""

    code = 503
    message = 'Nova has not spawned instance {instance} yet.'
    advice = 'Wait until the instance is active, or check it in Nova.'


class AgentIdentityRefused(Conflict):
    """A host has another agent, which is up."""

    message = 'Host {host} has another agent, which is running.'
    advice = (
        'Give each agent a [DEFAULT] host of its own. If the host was reinstalled, run '
        'cyborg-lite-manage agent forget-identity {host}.'
    )


class ReportOutdated(CyborgError):
    """A later report of the same host is stored."""

    message = 'A later report of host {host} is stored.'


class ProgrammingTimedOut(CyborgError):
    """Programming is still running when the API stops waiting. The job continues."""

    code = 504
    message = 'Programming of deployable {uuid} has not completed yet.'
    advice = 'Show the deployable later to see the result.'


class ConfigurationError(CyborgError):
    """The configuration is invalid, and the process cannot start."""

    message = '{reason}'
    advice = 'Correct the configuration, then start the daemon or command again.'


class StateLocked(CyborgError):
    """Another agent uses the state directory."""

    message = 'Another cyborg-lite-agent uses {path}.'
    advice = 'Stop that agent, or set another [agent] state_path and [DEFAULT] host.'


class ForeignState(CyborgError):
    """The state directory of the agent is a copy from another host."""

    message = 'The files in {path} are of host {other}, not of {host}.'
    advice = 'Delete the files of a copied image, or restore [DEFAULT] host.'


class SchemaOutdated(CyborgError):
    """The database has no schema, or that of an earlier version."""

    message = 'The database has schema revision {current}, this version needs {head}.'
    advice = 'Run `cyborg-lite-dbsync upgrade`, then start the service again.'


class MalformedMessage(InvalidInput):
    """An RPC message cannot be converted to the class that the method expects."""

    message = 'Malformed RPC message: {reason}'
    advice = 'Check that all daemons run compatible versions.'


class InvalidJobPayload(CyborgError):
    """The stored payload of a job cannot be read; the job fails without a retry."""

    message = 'A {type} job has an invalid payload: {reason}.'
    advice = 'Run `openstack accelerator job list` and cancel the job.'


class JobLost(CyborgError):
    """Another conductor leases the job now. Results of this conductor are discarded."""

    message = 'Job {job} is leased by another conductor now.'


class NoFreeHandle(CyborgError):
    """The provider is unknown, gone, unusable or exhausted. The bind fails."""

    code = 409
    message = '{reason}'
    advice = (
        'Compare `openstack accelerator device list` with Placement, then create the '
        'instance again.'
    )


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


class BindCancelled(CyborgError):
    """The ARQ was unbound or deleted during the bind."""

    code = 409
    message = 'The ARQ was unbound or deleted during the bind.'
