# SPDX-License-Identifier: Apache-2.0
PANEL = 'device_profiles'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'accelerators'
ADD_PANEL = 'cyborg_lite_dashboard.project.device_profiles.panel.DeviceProfiles'
