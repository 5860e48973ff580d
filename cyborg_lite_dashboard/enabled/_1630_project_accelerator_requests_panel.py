# SPDX-License-Identifier: Apache-2.0
PANEL = 'accelerator_requests'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'accelerators'
ADD_PANEL = (
    'cyborg_lite_dashboard.project.accelerator_requests.panel.AcceleratorRequests'
)
