# SPDX-License-Identifier: Apache-2.0
"""Errors of hosts and their agents."""

from cyborg_lite.errors.base import Conflict, CyborgError, NotFound


class HostNotFound(NotFound):
    """No agent or device of the host is known."""

    message = 'Host {host} not found.'
    advice = 'Run `openstack accelerator host list`.'


class ServiceNotFound(NotFound):
    """No daemon has the uuid."""

    message = 'Service {uuid} not found.'


class HostInUse(Conflict):
    """ARQs of instances use the host, so it cannot be forgotten."""

    message = 'Host {host} is in use by ARQs {arqs}.'
    advice = (
        'Run `openstack accelerator host disable {host}`, then move or delete the '
        'instances.'
    )


class HostChanged(Conflict):
    """The devices of a host, or their status, have changed since the client read it."""

    message = 'The devices of host {host} have changed.'
    advice = 'Read the host again, then repeat the change.'


class ServiceAlive(Conflict):
    """The daemon is up and would register again."""

    message = '{binary} on {host} is up.'
    advice = 'Stop {binary} on {host}, and wait for [conductor] agent_down_after.'


class HostAway(CyborgError):
    """The agent of a host did not answer an RPC. The agent may have executed it."""

    code = 503
    message = 'The agent of host {host} does not answer.'
    advice = (
        'Start cyborg-lite-agent on {host}, or check its connection to the message bus.'
    )


class AgentIdentityRefused(Conflict):
    """A host has another agent, which is up."""

    message = 'Host {host} has another agent, which is running on {machine}.'
    advice = (
        'Give each agent a [DEFAULT] host of its own. If the host was reinstalled, run '
        'cyborg-lite-manage agent forget-identity {host}.'
    )


class ReportOutdated(CyborgError):
    """A later report of the same host is stored."""

    message = 'A later report of host {host} is stored.'


class StateLocked(CyborgError):
    """Another agent uses the state directory."""

    message = 'Another cyborg-lite-agent uses {path}.'
    advice = 'Stop that agent, or set another [agent] state_path and [DEFAULT] host.'


class ForeignState(CyborgError):
    """The state directory of the agent is a copy from another host."""

    message = 'The files in {path} are of host {other}, not of {host}.'
    advice = 'Delete the files of a copied image, or restore [DEFAULT] host.'
