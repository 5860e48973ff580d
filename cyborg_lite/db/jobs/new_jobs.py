# SPDX-License-Identifier: Apache-2.0
"""Jobs that several transactions write to have Placement or a host follow a change."""

from cyborg_lite.model.jobs import JobType, NewJob, PlacementSyncPayload, ReleasePayload


def placement_sync_job(
    hostname: str, request_id: str | None = None, *, deep: bool = False
) -> NewJob:
    """Return the job that makes Placement match the devices of a host.

    Each transaction that changes the result of ``providers.list_providers_of_host``
    writes this job.

    :param deep: read all providers of the host from Placement again
    """
    return NewJob(
        JobType.PLACEMENT_SYNC,
        PlacementSyncPayload(hostname, deep).to_json(),
        key=hostname,
        request_id=request_id,
        widens=deep,
    )


def release_job(handle_uuid: str, hostname: str, request_id: str | None) -> NewJob:
    """Return the job that has a host clean an attach handle; one job for each handle.

    The payload names the handle only: its ARQ can change before the job runs again.
    Each attempt reads the handle with its generation, and stores its result for this
    generation only.
    """
    payload = ReleasePayload(handle_uuid).to_json()
    return NewJob(
        JobType.RELEASE,
        payload,
        key=handle_uuid,
        request_id=request_id,
        host=hostname,
    )
