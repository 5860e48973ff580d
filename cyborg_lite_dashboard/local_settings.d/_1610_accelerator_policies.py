# SPDX-License-Identifier: Apache-2.0
# Horizon executes this file among its settings, which have these dictionaries.
import os

import cyborg_lite_dashboard

# Overrides of the operator, below POLICY_FILES_PATH. The file may be absent.
POLICY_FILES['accelerator'] = 'accelerator_policy.yaml'
DEFAULT_POLICY_FILES['accelerator'] = os.path.join(
    os.path.dirname(cyborg_lite_dashboard.__file__),
    'conf',
    'default_policies.yaml',
)
