# SPDX-License-Identifier: Apache-2.0
"""Form that disables a device with a reason, or enables it."""

from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from horizon import exceptions, forms, messages

from cyborg_lite_dashboard import api

_MAINTAINING: Final = 'maintaining'


class StatusForm(forms.SelfHandlingForm):
    """Status of a device."""

    status = forms.ThemableChoiceField(
        label=_('Status'),
        choices=(
            ('enabled', _('Enabled: new instances may use the device')),
            (_MAINTAINING, _('Maintaining: new instances get other devices')),
        ),
    )
    reason = forms.CharField(
        label=_('Reason'),
        required=False,
        max_length=255,
        help_text=_('Why the device is disabled'),
    )

    # Any: Django has no types.
    def handle(self, request: Any, data: dict[str, Any]) -> bool:
        """Change the status. Return False if the service refuses it."""
        values = {'status': data['status']}
        if data['reason'] and data['status'] == _MAINTAINING:
            values['reason'] = data['reason']
        patch = [
            {'op': 'replace', 'path': f'/{name}', 'value': value}
            for name, value in values.items()
        ]
        path = f'/devices/{api.quote_path(self.initial["uuid"])}'
        try:
            api.connect(request).call('PATCH', path, body=patch)
        except api.ApiError:
            exceptions.handle(request, _('Unable to change the status of the device.'))
            return False
        messages.success(request, _('Changed the status of the device.'))
        return True
