# SPDX-License-Identifier: Apache-2.0
"""Form of a device profile: fields of the profile, and one part per group."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

MAX_GROUPS: Final = 16

_NAME: Final = RegexValidator(
    r'^[\w-]+\Z', _('Use letters, digits, hyphens and underscores.'), flags=re.ASCII
)
_RESOURCE_CLASS: Final = RegexValidator(
    r'^(FPGA|GPU|VGPU|PGPU|CUSTOM_\w+)\Z',
    _('Use FPGA, GPU, VGPU, PGPU or a name that starts with CUSTOM_.'),
    flags=re.ASCII,
)
_ATTACH_TARGETS: Final = (
    ('', _('The guest of the instance')),
    ('host', _('The host')),
    ('none', _('Nobody; the device is only reserved')),
)


def _split_words(text: str) -> list[str]:
    return re.split(r'[\s,]+', text.strip()) if text.strip() else []


class ProfileForm(forms.Form):
    """Fields of the profile itself."""

    name = forms.CharField(label=_('Name'), max_length=255, validators=[_NAME])
    description = forms.CharField(
        label=_('Description'), max_length=255, required=False
    )


class EditForm(ProfileForm):
    """Fields of a profile that exists."""

    enabled = forms.BooleanField(
        label=_('Enabled: new instances may use the profile'), required=False
    )
    # The generation that the user has seen.
    generation = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


class GroupForm(forms.Form):
    """Requirements on one resource provider, which serves the whole group."""

    resource_class = forms.CharField(
        label=_('Resource class'),
        validators=[_RESOURCE_CLASS],
        widget=forms.TextInput(attrs={'list': 'resource-classes'}),
        help_text=_('FPGA, GPU, VGPU, PGPU, or a class that starts with CUSTOM_'),
    )
    quantity = forms.IntegerField(label=_('Quantity'), min_value=1, initial=1)
    required_traits = forms.CharField(
        label=_('Required traits'),
        required=False,
        help_text=_('Separated by spaces, such as CUSTOM_NVIDIA_1EB8'),
    )
    forbidden_traits = forms.CharField(
        label=_('Forbidden traits'), required=False, help_text=_('Separated by spaces')
    )
    selector = forms.CharField(
        label=_('Selector'),
        required=False,
        help_text=_('Condition on attributes, such as device.memory_mib >= 40GiB'),
    )
    attach_target = forms.ChoiceField(
        label=_('Who uses it'), choices=_ATTACH_TARGETS, required=False
    )
    properties = forms.CharField(
        label=_('Other properties'),
        required=False,
        widget=forms.Textarea(attrs={'rows': 2}),
        help_text=_('One per line, such as accel:bitstream_name=sha256'),
    )

    def clean_properties(self) -> dict[str, str]:
        """Return the properties by key.

        :raises ValidationError: a line is not ``accel:<key>=<value>``, or repeats a key
        """
        properties: dict[str, str] = {}
        for line in self.cleaned_data['properties'].splitlines():
            if not line.strip():
                continue
            key, separator, value = (word.strip() for word in line.partition('='))
            if not separator or not value or not key.startswith('accel:'):
                raise forms.ValidationError(
                    _('Write accel:<key>=<value> in each line.')
                )
            if key in properties:
                raise forms.ValidationError(_('A key is repeated.'))
            properties[key] = value
        return properties

    def build_group(self) -> dict[str, str]:
        """Return the group as the API has it."""
        data = self.cleaned_data
        fields = {
            'accel:selector': data['selector'].strip(),
            'accel:attach_target': data['attach_target'],
        }
        return {
            f'resources:{data["resource_class"]}': str(data['quantity']),
            **_build_traits(data['required_traits'], 'required'),
            **_build_traits(data['forbidden_traits'], 'forbidden'),
            **{key: value for key, value in fields.items() if value},
            **data['properties'],
        }


def _build_traits(text: str, value: str) -> dict[str, str]:
    return {f'trait:{trait}': value for trait in _split_words(text)}


GroupFormSet = forms.formset_factory(
    GroupForm,
    extra=0,
    min_num=1,
    validate_min=True,
    max_num=MAX_GROUPS,
    validate_max=True,
    # By default a request could ask for a thousand forms more.
    absolute_max=MAX_GROUPS + 1,
)


def read_groups(data: Mapping[str, str], count: int) -> list[dict[str, str]]:
    """Return the input of each group as the user has typed it.

    :param data: fields of the request
    """
    return [
        {name: data.get(f'form-{number}-{name}', '') for name in GroupForm.base_fields}
        for number in range(count)
    ]


# Any: JSON.
def build_changes(
    profile: Mapping[str, Any], form: EditForm, groups: list[dict[str, str]] | None
) -> dict[str, Any]:
    """Return the values that differ from those of the profile.

    :param groups: None: the groups are not changed
    """
    data = form.cleaned_data
    values = {
        'name': data['name'],
        'description': data['description'] or None,
        'enabled': data['enabled'],
    }
    if groups is not None:
        values['groups'] = groups
    present = {**profile, 'description': profile['description'] or None}
    return {name: value for name, value in values.items() if value != present[name]}


def build_profile(form: ProfileForm, groups: Iterable[GroupForm]) -> dict[str, Any]:
    """Return the profile as the API accepts it."""
    description = form.cleaned_data['description']
    return {
        'name': form.cleaned_data['name'],
        **({'description': description} if description else {}),
        'groups': [group.build_group() for group in groups],
    }
