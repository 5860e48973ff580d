# SPDX-License-Identifier: Apache-2.0
"""Errors of jobs."""

from cyborg_lite.errors.base import Conflict, CyborgError, NotFound


class JobNotFound(NotFound):
    """The job does not exist. Completed jobs are deleted."""

    message = 'Job {uuid} not found.'
    advice = 'Run `openstack accelerator job list`. Completed jobs are not listed.'


class JobRefused(Conflict):
    """The job cannot be retried or cancelled."""

    message = 'Job {job} was not changed: {reason}'
    advice = 'Run `openstack accelerator job list` to see the state of the job.'


class InvalidJobPayload(CyborgError):
    """The stored payload of a job cannot be read; the job fails without a retry."""

    message = 'A {type} job has an invalid payload: {reason}.'
    advice = 'Run `openstack accelerator job list` and cancel the job.'


class JobLost(CyborgError):
    """Another conductor leases the job now. Results of this conductor are discarded."""

    message = 'Job {job} is leased by another conductor now.'
