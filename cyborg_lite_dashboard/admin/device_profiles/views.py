# SPDX-License-Identifier: Apache-2.0
"""Pages that administer device profiles."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from horizon import exceptions, messages
from horizon.views import HorizonTemplateView

from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.admin.device_profiles import forms, group_fields
from cyborg_lite_dashboard.admin.device_profiles.tables import AdminProfilesTable
from cyborg_lite_dashboard.project.device_profiles import views as project_views
from cyborg_lite_dashboard.project.device_profiles.views import build_profile_path

_INDEX: Final = 'horizon:admin:device_profiles:index'
_CONFLICT: Final = 409


class IndexView(project_views.IndexView):
    """List of device profiles with actions."""

    table_class = AdminProfilesTable


class _FormView(HorizonTemplateView):
    """Form of a profile. Buttons of the form add and remove groups."""

    template_name = 'cyborg_lite_dashboard/device_profile_form.html'
    form_class = forms.ProfileForm

    # Any: Django has no types.
    def post(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Change the number of groups, or save the profile."""
        groups = forms.GroupFormSet(request.POST)
        if 'add_group' in request.POST or 'remove_group' in request.POST:
            return self._change_groups(groups)
        form = self.form_class(request.POST)
        if form.is_valid() and groups.is_valid() and self._save(form, groups):
            return redirect(_INDEX)
        return self._show(form, groups)

    def _save(self, form: Any, groups: Any) -> bool:
        """Save the profile. Return False if the service refuses it."""
        raise NotImplementedError

    def _change_groups(self, groups: Any) -> HttpResponse:
        """Show the form again with one group more or less, and without errors."""
        data = self.request.POST
        texts = forms.read_groups(data, groups.total_form_count())
        removal = data.get('remove_group', '')
        if removal.isdecimal() and int(removal) < len(texts) and len(texts) > 1:
            del texts[int(removal)]
        elif 'add_group' in data and len(texts) < forms.MAX_GROUPS:
            texts.append({'quantity': '1'})
        form = self.form_class(
            initial={name: data.get(name, '') for name in self.form_class.base_fields}
        )
        return self._show(form, forms.GroupFormSet(initial=texts))

    def _show(self, form: Any, groups: Any, **values: Any) -> HttpResponse:
        """Show the form.

        :param groups: None: the form cannot change the groups
        """
        context = self.get_context_data(form=form, groups=groups, **values)
        return self.render_to_response(context)


class CreateView(_FormView):
    """Form of a new profile."""

    page_title = _('Create Device Profile')

    # Any: Django has no types.
    def get(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Show an empty form with one group."""
        return self._show(forms.ProfileForm(), forms.GroupFormSet())

    def _save(self, form: Any, groups: Any) -> bool:
        profile = forms.build_profile(form, groups)
        try:
            api.connect(self.request).call('POST', '/device_profiles', body=[profile])
        except api.ApiError:
            exceptions.handle(self.request, _('Unable to create the device profile.'))
            return False
        text = _('Created device profile %s.') % profile['name']
        messages.success(self.request, text)
        return True


class EditView(_FormView):
    """Form of a profile that exists.

    The form contains the generation that the user has seen. The service refuses the
    change if the profile has another one. Groups that the form cannot express are only
    shown.
    """

    page_title = _('Edit Device Profile')
    form_class = forms.EditForm

    # Any: Django has no types.
    def dispatch(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Read the profile first. Lead back to the list if that fails."""
        self.path = build_profile_path(names['uuid'])
        self.has_conflict = False
        try:
            self.client = api.connect(request)
            self.profile = self._read()
        except api.ApiError:
            text = _('Unable to show the device profile.')
            exceptions.handle(request, text, redirect=reverse(_INDEX))
        self.inputs = group_fields.build_inputs(self.profile['groups'])
        return super().dispatch(request, *arguments, **names)

    # Any: JSON.
    def _read(self) -> Mapping[str, Any]:
        answer = self.client.call('GET', self.path)
        profile: Mapping[str, Any] = answer['device_profile']
        return profile

    def get(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Show the present values."""
        values = {name: self.profile[name] for name in forms.EditForm.base_fields}
        return self._show(forms.EditForm(initial=values), self._build_groups())

    def post(self, request: Any, *arguments: Any, **names: Any) -> HttpResponse:
        """Change the number of groups, or save the profile."""
        if self.inputs is not None:
            return super().post(request, *arguments, **names)
        form = forms.EditForm(request.POST)
        if form.is_valid() and self._save(form, None):
            return redirect(_INDEX)
        return self._show(form, None)

    def _build_groups(self) -> Any:
        if self.inputs is None:
            return None
        return forms.GroupFormSet(initial=self.inputs)

    def _save(self, form: Any, groups: Any) -> bool:
        new = None if groups is None else [group.build_group() for group in groups]
        old = [group_fields.remove_computed(group) for group in self.profile['groups']]
        values = forms.build_changes({**self.profile, 'groups': old}, form, new)
        if values and not self._send(values, form.cleaned_data['generation']):
            return False
        name = values.get('name', self.profile['name'])
        messages.success(self.request, _('Saved device profile %s.') % name)
        return True

    def _send(self, values: Mapping[str, Any], generation: int) -> bool:
        """Change the profile. Return False if the service refuses it."""
        patch = [
            {'op': 'replace', 'path': f'/{name}', 'value': value}
            for name, value in values.items()
        ]
        try:
            self.client.call('PATCH', self.path, body=patch, generation=generation)
        except api.ApiError as error:
            if error.status == _CONFLICT and self._has_changed(generation):
                self.has_conflict = True
            else:
                text = _('Unable to change the device profile.')
                exceptions.handle(self.request, text)
            return False
        return True

    def _has_changed(self, generation: int) -> bool:
        """Check whether the profile has another generation. Other conflicts exist."""
        try:
            return bool(self._read()['generation'] != generation)
        except api.ApiError:
            return False

    def get_context_data(self, **values: Any) -> dict[str, Any]:
        """Return the context of the page."""
        context: dict[str, Any] = super().get_context_data(**values)
        context['profile'] = self.profile
        context['has_conflict'] = self.has_conflict
        context['present_groups'] = [
            sorted(group.items()) for group in self.profile['groups']
        ]
        return context
