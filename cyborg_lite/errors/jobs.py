# SPDX-License-Identifier: Apache-2.0
"""Errors of jobs."""

from cyborg_lite.errors.base import Conflict, CyborgError, NotFound


class JobNotFound(NotFound):
    """The job does not exist. Before 2.7 only programming jobs are shown."""

    message = 'Job {uuid} not found.'
    advice = 'Show an operation of microversion 2.7.'


class OperationNotFound(NotFound):
    """The operation does not exist, or belongs to another project."""

    message = 'Operation {uuid} not found.'
    advice = 'Run `openstack accelerator operation list`.'


class OperationRefused(Conflict):
    """The operation cannot be retried or cancelled."""

    message = 'Operation {uuid} was not changed: {reason}'
    advice = 'Run `openstack accelerator operation show` to see its state.'


class InvalidJobPayload(CyborgError):
    """The stored payload of a job cannot be read; the job fails without a retry."""

    message = 'A {type} job has an invalid payload: {reason}.'
    advice = 'Run `openstack accelerator operation list` and cancel the operation.'


class JobLost(CyborgError):
    """Another conductor leases the job now. Results of this conductor are discarded."""

    message = 'Job {job} is leased by another conductor now.'
