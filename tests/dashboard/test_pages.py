# SPDX-License-Identifier: Apache-2.0
"""Pages of a real Horizon, requested by users of a real Keystone."""

import html
import re
import uuid
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from tests.servers.horizon import DashboardUser, HorizonServer
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.stack import ADMIN, expect

NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}
PROFILES: Final = '/admin/device_profiles/'
DEVICES: Final = '/admin/accelerator_devices/'
MARKUP: Final = '<script>alert(1)</script>'


@pytest.fixture(scope='module')
def admin(horizon: HorizonServer, cloud: KeystoneCloud) -> DashboardUser:
    """Session of an administrator."""
    return horizon.log_in(cloud.admin.user)


@pytest.fixture(scope='module')
def member(horizon: HorizonServer, cloud: KeystoneCloud) -> DashboardUser:
    """Session of a member of the same project."""
    return horizon.log_in(cloud.member.user)


@pytest.fixture(autouse=True)
def no_traceback(horizon: HorizonServer) -> Iterator[None]:
    """Check that no page of a test ended with an unexpected error."""
    before = horizon.read_log().count('Internal Server Error')
    yield
    assert horizon.read_log().count('Internal Server Error') == before


def create_profile(cloud: KeystoneCloud, **values: Any) -> dict[str, Any]:
    """Create a device profile by the API."""
    name = f'profile-{uuid.uuid4().hex[:8]}'
    body = {'name': name, 'groups': [{'resources:FPGA': '1'}], **values}
    answer = cloud.api(NEWEST).ask('POST', '/v2/device_profiles', [body])
    profile: dict[str, Any] = expect(answer, 201)
    return profile


def find_device(cloud: KeystoneCloud, kind: str) -> dict[str, Any]:
    """Return a device of a type that is not busy."""
    devices = expect(cloud.api(NEWEST).ask('GET', '/v2/devices'), 200)['devices']
    device: dict[str, Any] = next(
        device
        for device in devices
        if (device['type'], device['health']) == (kind, 'ok')
    )
    return device


def build_form(name: str, *groups: dict[str, str]) -> dict[str, str]:
    """Return the fields of the form of a new profile."""
    form = {
        'name': name,
        'form-TOTAL_FORMS': str(len(groups)),
        'form-INITIAL_FORMS': '0',
    }
    for number, group in enumerate(groups):
        fields = {'quantity': '1', **group}
        form |= {f'form-{number}-{key}': text for key, text in fields.items()}
    return form


def test_administrator_sees_devices_with_units(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    device = find_device(cloud, 'GPU')
    assert device['model'] in admin.get(DEVICES).text
    page = admin.get(f'{DEVICES}{device["uuid"]}/').text
    assert f'{DEVICES}hosts/{cloud.host}/topology.svg' in page
    assert '0000:3b:00.0' in page
    assert 'added' in page  # the first event of its history


def test_picture_of_host_is_safe_image(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    response = admin.get(f'{DEVICES}hosts/{cloud.host}/topology.svg')
    assert response.headers['Content-Type'] == 'image/svg+xml'
    assert "default-src 'none'" in response.headers['Content-Security-Policy']
    assert response.headers['X-Content-Type-Options'] == 'nosniff'
    assert ElementTree.fromstring(response.text).tag.endswith('svg')
    assert admin.get(f'{DEVICES}hosts/nowhere/topology.svg').status_code == 404


def test_member_sees_only_panels_of_project(
    member: DashboardUser, cloud: KeystoneCloud
) -> None:
    profile = create_profile(cloud)
    page = member.get('/project/device_profiles/').text
    assert profile['name'] in page
    assert '/explain/' not in page
    assert member.get('/project/accelerator_requests/').ok
    assert member.get(DEVICES).status_code == 403


def test_form_creates_profile_with_groups(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    name = f'form-{uuid.uuid4().hex[:8]}'
    gpu = {
        'resource_class': 'PGPU',
        'required_traits': 'CUSTOM_NVIDIA_1EB8',
        'attach_target': 'host',
    }
    fpga = {'resource_class': 'FPGA', 'quantity': '2', 'forbidden_traits': 'CUSTOM_X'}
    page = admin.post(f'{PROFILES}create/', build_form(name, gpu, fpga))
    assert f'Created device profile {name}.' in page.text
    path = f'/v2/device_profiles/{name}'
    answer = expect(cloud.api(NEWEST).ask('GET', path), 200)
    assert answer['device_profile']['groups'] == [
        {
            'resources:PGPU': '1',
            'trait:CUSTOM_NVIDIA_1EB8': 'required',
            'accel:attach_target': 'host',
        },
        {'resources:FPGA': '2', 'trait:CUSTOM_X': 'forbidden'},
    ]


def test_buttons_add_and_remove_groups(admin: DashboardUser) -> None:
    form = build_form('kept', {'resource_class': 'PGPU'}, {'resource_class': MARKUP})
    page = admin.post(f'{PROFILES}create/', {**form, 'add_group': '1'}).text
    assert 'name="form-TOTAL_FORMS" value="3"' in page
    assert 'value="kept"' in page
    assert MARKUP not in page
    page = admin.post(f'{PROFILES}create/', {**form, 'remove_group': '0'}).text
    assert 'name="form-TOTAL_FORMS" value="1"' in page
    assert (
        'value="PGPU"' not in re.findall(r'<input[^>]*form-0-resource[^>]*>', page)[0]
    )


@pytest.mark.parametrize('count', ['x', '-1', '999999'])
def test_invalid_number_of_groups_is_no_error(admin: DashboardUser, count: str) -> None:
    form = {**build_form('x'), 'form-TOTAL_FORMS': count}
    for button in ({'add_group': '1'}, {'remove_group': '7'}, {}):
        assert admin.post(f'{PROFILES}create/', {**form, **button}).status_code == 200


def test_refused_profile_shows_reason_and_keeps_input(admin: DashboardUser) -> None:
    group = {'resource_class': 'PGPU', 'properties': 'accel:selectr=1'}
    page = admin.post(f'{PROFILES}create/', build_form('refused', group)).text
    assert 'Unable to create the device profile.' in page
    assert 'accel:selectr' in page
    assert 'value="refused"' in page


def read_form(page: str) -> dict[str, str]:
    """Return the fields of the form of a profile, as a browser sends them back."""
    fields = {
        match['name']: html.unescape(match['value'] or '')
        for match in re.finditer(
            r'<input[^>]*? name="(?P<name>[^"]+)"(?:[^>]*? value="(?P<value>[^"]*)")?',
            page[page.index('id="device_profile_form"') :],
        )
    }
    areas = r'<textarea[^>]*? name="([^"]+)"[^>]*>([^<]*)</textarea>'
    fields |= {name: html.unescape(text) for name, text in re.findall(areas, page)}
    # A browser sends a checkbox only if it is checked.
    if fields.pop('enabled', None) is not None:
        is_checked = re.search(r'<input[^>]*name="enabled"[^>]*checked', page)
        fields |= {'enabled': 'on'} if is_checked else {}
    return fields


def read_profile(cloud: KeystoneCloud, uuid: str) -> dict[str, Any]:
    """Return a profile as the API has it."""
    answer = cloud.api(NEWEST).ask('GET', f'/v2/device_profiles/{uuid}')
    profile: dict[str, Any] = expect(answer, 200)['device_profile']
    return profile


def test_form_changes_profile(admin: DashboardUser, cloud: KeystoneCloud) -> None:
    groups = [
        {'resources:FPGA': '1', 'accel:selector': 'device.numa_node == 0'},
        {'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'},
    ]
    profile = create_profile(cloud, groups=groups, description='first')
    path = f'{PROFILES}{profile["uuid"]}/edit/'
    assert path in admin.get(PROFILES).text
    form = read_form(admin.get(path).text)
    assert form['name'] == profile['name']
    assert form['form-0-selector'] == 'device.numa_node == 0'
    assert form['form-0-required_traits'] == ''  # the trait of the selector is hidden
    assert form.pop('enabled') == 'on'
    form |= {
        'name': f'{profile["name"]}-2',
        'description': '',
        'form-0-selector': '',
        'form-1-quantity': '1',
    }
    page = admin.post(path, form)
    assert f'Saved device profile {profile["name"]}-2.' in page.text
    changed = read_profile(cloud, profile['uuid'])
    assert (changed['name'], changed['description'], changed['enabled']) == (
        f'{profile["name"]}-2',
        None,
        False,
    )
    assert changed['groups'] == [
        {'resources:FPGA': '1'},
        {'resources:PGPU': '1', 'trait:CUSTOM_A': 'required'},
    ]


def test_form_unchanged_keeps_generation(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    group = {'resources:FPGA': '1', 'accel:selector': 'device.numa_node == 0'}
    profile = create_profile(cloud, groups=[group])
    path = f'{PROFILES}{profile["uuid"]}/edit/'
    page = admin.post(path, read_form(admin.get(path).text))
    assert f'Saved device profile {profile["name"]}.' in page.text
    assert read_profile(cloud, profile['uuid'])['generation'] == profile['generation']


def test_profile_changed_meanwhile_is_not_overwritten(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    profile = create_profile(cloud)
    path = f'{PROFILES}{profile["uuid"]}/edit/'
    form = {**read_form(admin.get(path).text), 'description': 'mine'}
    patch = [{'op': 'replace', 'path': '/description', 'value': 'theirs'}]
    api_path = f'/v2/device_profiles/{profile["uuid"]}'
    expect(cloud.api(NEWEST).ask('PATCH', api_path, patch), 200)
    page = admin.post(path, form).text
    assert 'Somebody else has changed this device profile' in page
    assert f'href="{path}?reload=1"' in page
    assert read_form(page)['description'] == 'mine'
    assert read_profile(cloud, profile['uuid'])['description'] == 'theirs'
    # Another group is no new opportunity to overwrite the change.
    page = admin.post(path, {**read_form(page), 'add_group': '1'}).text
    form = {**read_form(page), 'form-1-resource_class': 'FPGA'}
    assert 'Somebody else' in admin.post(path, form).text
    reloaded = {**read_form(admin.get(path).text), 'description': 'mine'}
    assert 'Saved device profile' in admin.post(path, reloaded).text


def test_name_in_use_is_no_conflict_with_somebody(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    profile, rival = create_profile(cloud), create_profile(cloud)
    path = f'{PROFILES}{profile["uuid"]}/edit/'
    form = {**read_form(admin.get(path).text), 'name': rival['name']}
    page = admin.post(path, form).text
    assert 'Unable to change the device profile.' in page
    assert 'already exists' in page
    assert 'Somebody else' not in page


def test_groups_beyond_form_are_shown_and_kept(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    group = {'resources:FPGA': '1', 'alternatives': [{'resources:PGPU': '1'}]}
    profile = create_profile(cloud, groups=[group])
    path = f'{PROFILES}{profile["uuid"]}/edit/'
    page = admin.get(path).text
    assert 'Use the command line to change them.' in page
    assert 'resources:FPGA' in page
    assert 'name="add_group"' not in page
    form = {**read_form(page), 'description': 'new', 'add_group': '1'}
    assert 'Saved device profile' in admin.post(path, form).text
    changed = read_profile(cloud, profile['uuid'])
    assert (changed['description'], changed['groups']) == ('new', profile['groups'])


def test_edit_of_missing_profile_leads_to_list(admin: DashboardUser) -> None:
    page = admin.get(f'{PROFILES}{uuid.uuid4()}/edit/')
    assert page.url.endswith(PROFILES)
    assert 'Unable to show the device profile.' in page.text


def test_member_has_no_form(member: DashboardUser, cloud: KeystoneCloud) -> None:
    profile = create_profile(cloud)
    path = f'{PROFILES}{profile["uuid"]}/edit/'
    assert member.get(path).status_code == 403
    assert '/edit/' not in member.get('/project/device_profiles/').text


def test_profile_is_explained_and_deleted(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    groups = [{'resources:PGPU': '1', 'trait:CUSTOM_NOWHERE': 'required'}]
    profile = create_profile(cloud, groups=groups)
    page = admin.get(f'{PROFILES}{profile["uuid"]}/explain/', hostname=cloud.host).text
    assert 'CUSTOM_NOWHERE' in page
    assert 'Never' in page
    action = {'action': f'device_profiles__delete__{profile["uuid"]}'}
    assert 'Deleted Device Profile' in admin.post(PROFILES, action).text
    path = f'/v2/device_profiles/{profile["uuid"]}'
    assert cloud.api(NEWEST).ask('GET', path).status == 404


def test_explain_shows_warnings(admin: DashboardUser, cloud: KeystoneCloud) -> None:
    profile = create_profile(cloud)
    path = f'/v2/device_profiles/{profile["uuid"]}'
    disabled = [{'op': 'replace', 'path': '/enabled', 'value': False}]
    expect(cloud.api(NEWEST).ask('PATCH', path, disabled), 200)
    page = admin.get(f'{PROFILES}{profile["uuid"]}/explain/').text
    assert '<div class="alert alert-warning">The profile is disabled.' in page


def test_markup_in_description_is_escaped(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    profile = create_profile(cloud, description=MARKUP)
    for path in (PROFILES, f'{PROFILES}{profile["uuid"]}/'):
        page = admin.get(path).text
        assert '&lt;script&gt;alert(1)' in page
        assert MARKUP not in page


def test_status_of_device_is_changed_with_reason(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    path = f'{DEVICES}{find_device(cloud, "FPGA")["uuid"]}/status/'
    form = {'status': 'maintaining', 'reason': 'The fan is changed.'}
    admin.post(path, form)
    device = find_device(cloud, 'FPGA')
    assert (device['status'], device['status_reason']) == tuple(form.values())
    assert 'maintaining: The fan is changed.' in admin.get(DEVICES).text
    admin.post(path, {'status': 'enabled', 'reason': ''})
    assert find_device(cloud, 'FPGA')['status'] == 'enabled'


def test_request_shows_history(admin: DashboardUser, cloud: KeystoneCloud) -> None:
    instance = cloud.boot_bound('FPGA')
    path = '/admin/accelerator_requests/'
    assert instance.uuid in admin.get(path).text
    page = admin.get(f'{path}{instance.arqs[0]}/').text
    assert all(step in page for step in ('Initial', 'BindStarted', 'Bound'))
    instance.delete()


@pytest.mark.parametrize(
    'panel', ['admin/accelerator_devices', 'project/accelerator_requests']
)
def test_missing_object_leads_to_list(admin: DashboardUser, panel: str) -> None:
    page = admin.get(f'/{panel}/{uuid.uuid4()}/')
    assert page.url.endswith(f'/{panel}/')
    assert 'Unable to show' in page.text


def test_long_list_has_pages(admin: DashboardUser, cloud: KeystoneCloud) -> None:
    names = {create_profile(cloud)['name'] for _ in range(21)}
    first = admin.get('/project/device_profiles/').text
    match = re.search(r'href="\?(device_profiles_marker=[^"]+|marker=[^"]+)"', first)
    assert match is not None
    second = admin.get(f'/project/device_profiles/?{match[1]}').text
    assert [name for name in names if name not in first + second] == []
    assert not names <= set(re.findall(r'profile-[0-9a-f]{8}', first))
    link = re.search(r'href="\?(prev_marker=[^"]+)"', second)
    assert link is not None
    previous = admin.get(f'/project/device_profiles/?{link[1]}').text
    pattern = r'(?<=>)profile-[0-9a-f]{8}'
    assert re.findall(pattern, previous) == re.findall(pattern, first)


def test_service_that_is_down_is_message(
    admin: DashboardUser, cloud: KeystoneCloud
) -> None:
    [child] = [child for child in cloud.children if 'standalone' in child.log.name]
    child.end()
    for path in (DEVICES, PROFILES, '/project/accelerator_requests/'):
        page = admin.get(path)
        assert page.status_code == 200
        assert 'Unable to list' in page.text
    cloud.restart(child, 'standalone')
