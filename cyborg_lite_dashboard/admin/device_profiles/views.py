# SPDX-License-Identifier: Apache-2.0
"""Pages that administer device profiles."""

from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _
from horizon import exceptions, messages
from horizon.views import HorizonTemplateView

from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.admin.device_profiles import forms
from cyborg_lite_dashboard.admin.device_profiles.tables import AdminProfilesTable
from cyborg_lite_dashboard.project.device_profiles import views as project_views

_INDEX: Final = 'horizon:admin:device_profiles:index'
_VERSION: Final = '2.18'


class IndexView(project_views.IndexView):
    """List of device profiles with actions."""

    table_class = AdminProfilesTable


class CreateView(HorizonTemplateView):
    """Form of a new profile. Buttons of the form add and remove groups."""

    template_name = 'cyborg_lite_dashboard/create_device_profile.html'
    page_title = _('Create Device Profile')

    # Any: Django has no types.
    def get(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Show an empty form with one group."""
        return self._show(forms.ProfileForm(), forms.GroupFormSet())

    def post(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Change the number of groups, or create the profile."""
        groups = forms.GroupFormSet(request.POST)
        if 'add_group' in request.POST or 'remove_group' in request.POST:
            return self._change_groups(groups)
        form = forms.ProfileForm(request.POST)
        if form.is_valid() and groups.is_valid() and self._create(form, groups):
            return redirect(_INDEX)
        return self._show(form, groups)

    def _change_groups(self, groups: Any) -> HttpResponse:
        """Show the form again with one group more or less, and without errors."""
        data = self.request.POST
        texts = forms.read_groups(data, groups.total_form_count())
        removal = data.get('remove_group', '')
        if removal.isdecimal() and int(removal) < len(texts) and len(texts) > 1:
            del texts[int(removal)]
        elif 'add_group' in data and len(texts) < forms.MAX_GROUPS:
            texts.append({'quantity': '1'})
        form = forms.ProfileForm(
            initial={name: data.get(name, '') for name in forms.ProfileForm.base_fields}
        )
        return self._show(form, forms.GroupFormSet(initial=texts))

    def _create(self, form: forms.ProfileForm, groups: Any) -> bool:
        """Create the profile. Return False if the service refuses it."""
        profile = forms.build_profile(form, groups)
        try:
            api.connect(self.request).call(
                'POST', '/device_profiles', _VERSION, body=[profile]
            )
        except api.ApiError:
            exceptions.handle(self.request, _('Unable to create the device profile.'))
            return False
        text = _('Created device profile %s.') % profile['name']
        messages.success(self.request, text)
        return True

    def _show(self, form: forms.ProfileForm, groups: Any) -> HttpResponse:
        context = self.get_context_data(form=form, groups=groups)
        return self.render_to_response(context)
