# SPDX-License-Identifier: Apache-2.0
"""Every error of the product, with its HTTP code and the advice for the operator.

Each class says its text once, as a template whose fields are the keyword arguments
of the constructor. ``text`` is what a client may read: no SQL, no path, no secret.
"""

from typing import ClassVar


class CyborgError(Exception):
    """The root. Errors of this family cross the message bus by class and fields."""

    code: ClassVar[int] = 500
    message: ClassVar[str] = 'The service failed to handle the request.'
    advice: str = 'Look for the request id in the logs of the conductor.'

    def __init__(self, *_said: object, **fields: object) -> None:
        # oslo.messaging rebuilds an error from its args and from `kwargs`; the text
        # is made from the fields on both sides, so the positional copy is ignored.
        self.kwargs = fields
        self.text = self.message.format(**fields)
        self.advice = self.advice.format(**fields)
        super().__init__(self.text)


# --- 400: the request is wrong and will stay wrong -------------------------------


class InvalidInput(CyborgError):
    code = 400
    message = '{reason}'
    advice = 'Correct the request.'


class InvalidDeviceProfile(InvalidInput):
    message = 'Invalid device profile: {reason}'


class EmptyDeviceProfile(InvalidInput):
    message = 'Device profile {name} asks for no accelerator.'


class InvalidPatch(InvalidInput):
    message = 'Invalid patch of accelerator request: {reason}'


class InstanceHasArqs(InvalidInput):
    message = 'Instance {instance} already has accelerator requests.'
    advice = 'Release the accelerators that the instance has before binding others.'


# --- 403 --------------------------------------------------------------------------


class Forbidden(CyborgError):
    code = 403
    message = '{reason}'
    advice = 'Check the roles of the caller and the policy file.'


class PolicyForbids(Forbidden):
    message = "Policy doesn't allow {rule} to be performed."


class ServiceTokenRequired(Forbidden):
    message = (
        '{action} requires a service token: accelerators of instances are managed '
        'through the Compute API.'
    )
    advice = (
        'Set [service_user] send_service_user_token = true in nova.conf and give '
        "Nova's user the service role."
    )


# --- 404 --------------------------------------------------------------------------


class NotFound(CyborgError):
    code = 404
    message = '{what} {name} not found.'
    advice = 'List the collection to see what there is.'


class DeviceProfileNotFound(NotFound):
    message = 'Device profile {name} not found.'


class ArqNotFound(NotFound):
    message = 'Accelerator request {uuid} not found.'


class DeviceNotFound(NotFound):
    message = 'Device {uuid} not found.'


class DeployableNotFound(NotFound):
    message = 'Deployable {uuid} not found.'


class JobNotFound(NotFound):
    message = 'Job {uuid} not found.'
    advice = 'See cyborg-lite-manage jobs list; jobs that are done are gone.'


class AttributeNotFound(NotFound):
    message = 'Attribute {uuid} not found.'


# --- 405, 406, 413, 415: the protocol ---------------------------------------------


class MethodNotAllowed(CyborgError):
    code = 405
    message = 'The method {method} is not allowed for this resource.'


class NotAcceptable(CyborgError):
    code = 406
    message = '{reason}'
    advice = 'Ask for a microversion in the range that the version document shows.'


class BodyTooLarge(CyborgError):
    code = 413
    message = 'The request body is larger than {limit} bytes.'


class UnsupportedMediaType(CyborgError):
    code = 415
    message = 'The request body must be application/json.'


# --- 409, 423: the object is in the way -------------------------------------------


class Conflict(CyborgError):
    code = 409
    message = '{reason}'
    advice = 'Look at the state of the object, then retry.'


class DeviceProfileExists(Conflict):
    message = 'Device profile {name} already exists.'


class DeviceProfileDisabled(Conflict):
    message = (
        'Device profile {name} is disabled: it makes no accelerator requests, but for '
        'servers that had some and are brought back.'
    )
    advice = 'Use another flavor, or enable the profile.'


class ImpossibleDeviceProfile(Conflict):
    message = 'Device profile {name} can never fit. {reason}'
    advice = 'Ask for what one provider has, or unset [api] refuse_impossible_profiles.'


class DeviceProfileInUse(Conflict):
    message = 'Device profile {name} is in use by accelerator requests.'
    advice = 'Delete the servers that use the profile first.'


class AttributeExists(Conflict):
    message = 'Attribute {key} of deployable {deployable} already exists.'
    advice = 'Delete the attribute first.'


class ArqStateConflict(Conflict):
    message = 'Cannot {event} an accelerator request in state {state}.'


class JobRefused(Conflict):
    """To an operator at the command line; no client asks for a job."""

    message = 'Job {job} is left as it is: {reason}'
    advice = 'See cyborg-lite-manage jobs list.'


class ArqsNotResolved(CyborgError):
    code = 423
    message = 'The accelerator requests of instance {instance} are not resolved yet.'
    advice = 'Retry in a moment; the jobs of the instance are still running.'


class PowerOnHeld(CyborgError):
    """Below 2.4 a client has no words for it, and starts the guest without looking."""

    code = 423
    message = (
        'Instance {instance} must not be started now: the host {host} has not '
        'confirmed the devices of its accelerator requests {arqs}.'
    )
    advice = (
        'Start cyborg-lite-agent on {host} and wait until it has rebuilt the devices, '
        'or set [api] hold_power_on = false to start guests without them.'
    )


# --- 5xx: somebody else is away ---------------------------------------------------


class ServiceUnavailable(CyborgError):
    code = 503
    message = 'The service is not available now: {what} does not answer.'
    advice = 'Check that {what} is running and reachable from this host.'


class DatabaseError(CyborgError):
    """The database answers, but not what it should; the log has its words."""

    message = 'The database refused the request.'
    advice = 'Run cyborg-lite-dbsync upgrade; look at the log of the conductor.'


class RemoteError(CyborgError):
    """Another OpenStack service answered with an error that we did not expect."""

    message = '{service} answered {status}: {reason}'
    advice = 'Look for the request id in the logs of {service}.'


class PlacementConflict(CyborgError):
    code = 409
    message = 'Resource provider {provider} was changed by somebody else meanwhile.'


class ProviderInUse(Conflict):
    message = 'Resource provider {provider} has allocations, or providers below it.'
    advice = 'Look with `openstack resource provider show --allocations {provider}`.'


class ProviderExists(Conflict):
    message = 'There is another resource provider with the name or uuid of {name}.'


class ComputeNodeAbsent(CyborgError):
    """Placement knows no compute node by the name of a host; it is tried again."""

    code = 503
    message = 'Placement has no compute node provider named {host}.'
    advice = (
        'Start nova-compute on {host}, or set [DEFAULT] host of its agent to the '
        'hypervisor hostname that Nova uses. If it is to be no compute node, name it '
        'in [conductor] hosts_without_compute.'
    )


# --- on the host ------------------------------------------------------------------


class DriverError(CyborgError):
    """A driver could not do what it was asked; another device may well do."""

    message = '{reason}'
    advice = 'Look at the health of the device and at the log of the agent.'


class DeviceBusy(DriverError):
    message = 'Device {address} is busy: {reason}'


class DeviceGone(DriverError):
    message = 'Device {address} does not answer.'


class ToolTimedOut(DriverError):
    """It was killed; what it left on the device is not known."""

    message = '{tool} did not end in {seconds} seconds.'


class ToolMissing(DriverError):
    message = '{tool} is not installed on the host.'
    advice = 'Install it, or set its path in the section of the driver.'


class BitstreamRefused(DriverError):
    """Seen before anything was touched: the card is as it was."""

    code = 409
    message = 'Bitstream {image} is refused: {reason}'
    advice = 'Correct the properties of the image, or name another one.'


class BitstreamNotFound(DriverError):
    code = 404
    message = 'Bitstream not found: {reason}'
    advice = 'Look for images with the tag FPGA in Glance.'


class LoadingFailed(DriverError):
    """What the region holds now is not what it held, nor what it should hold."""

    message = 'Loading bitstream {image} failed: {reason}'
    advice = 'Look at the log of the agent; load a bitstream by hand to use the region.'


class DeployableInUse(Conflict):
    message = 'Deployable {uuid} cannot be programmed: {reason}'
    advice = 'Delete the servers that use the device first.'


class DeviceHangs(DriverError):
    """What was being done to it may still happen: it must not be used meanwhile."""

    message = 'Device {address} hangs: {what} did not return in {seconds} seconds.'
    advice = (
        'Look at the kernel log of its host; the driver of the vendor may have to be '
        'loaded again, or the host to be rebooted.'
    )


class HostAway(CyborgError):
    """The agent of a host did not answer; what it did meanwhile is not known."""

    code = 503
    message = 'The agent of host {host} does not answer.'
    advice = 'Start cyborg-lite-agent on {host}, or check its connection to the bus.'


class ProgrammingTimedOut(CyborgError):
    """As ``HostAway``, for the one call in which a client waits for a host."""

    code = 504
    message = 'The host of deployable {uuid} has not programmed it yet.'
    advice = 'Look at the log of the agent; show the deployable later.'


class ConfigurationError(CyborgError):
    message = '{reason}'
    advice = 'Correct the configuration file and start the service again.'


class JobLost(CyborgError):
    """Another conductor took the job over; whatever this one did must not count."""

    message = 'Job {job} belongs to another conductor now.'


# --- why a bind ends or waits; never sent to a client ------------------------------


class NoFreeHandle(CyborgError):
    code = 409
    message = '{reason}'
    advice = 'Compare the devices of the host with Placement, then boot again.'


class HandlesContended(CyborgError):
    """Free handles are there, but other transactions hold them for a moment."""

    code = 409
    message = 'Free accelerators are being claimed by others.'


class BindCancelled(CyborgError):
    code = 409
    message = 'The accelerator request was unbound or deleted while it was bound.'
