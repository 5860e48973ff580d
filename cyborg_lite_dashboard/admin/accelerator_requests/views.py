# SPDX-License-Identifier: Apache-2.0
"""Pages of the accelerator requests of all projects."""

from collections.abc import Mapping
from typing import Any

from cyborg_lite_dashboard.admin.accelerator_requests.tables import AdminRequestsTable
from cyborg_lite_dashboard.project.accelerator_requests import views as project_views


class IndexView(project_views.IndexView):
    """List of the requests of all projects."""

    table_class = AdminRequestsTable

    def build_query(self) -> Mapping[str, Any]:
        """Select all projects."""
        return {}
