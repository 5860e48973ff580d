# SPDX-License-Identifier: Apache-2.0
PANEL = 'accelerator_devices'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'accelerators'
ADD_PANEL = 'cyborg_lite_dashboard.admin.accelerator_devices.panel.AcceleratorDevices'
