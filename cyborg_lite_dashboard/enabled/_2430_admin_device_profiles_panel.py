# SPDX-License-Identifier: Apache-2.0
PANEL = 'device_profiles'
PANEL_DASHBOARD = 'admin'
PANEL_GROUP = 'accelerators'
ADD_PANEL = 'cyborg_lite_dashboard.admin.device_profiles.panel.AdminDeviceProfiles'
