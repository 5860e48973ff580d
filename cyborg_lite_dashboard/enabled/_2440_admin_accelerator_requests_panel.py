# SPDX-License-Identifier: Apache-2.0
PANEL = 'accelerator_requests'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'accelerators'
ADD_PANEL = (
    'cyborg_lite_dashboard.admin.accelerator_requests.panel.AdminAcceleratorRequests'
)
