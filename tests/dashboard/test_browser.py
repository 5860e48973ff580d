# SPDX-License-Identifier: Apache-2.0
"""An administrator who works with the panels in a headless Chromium.

With ``CYBORG_LITE_TEST_SCREENSHOTS`` set to a directory, the pages are saved there.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.servers.horizon import HorizonServer
from tests.servers.keystone import PASSWORD
from tests.servers.keystone_cloud import KeystoneCloud
from tests.servers.stack import ADMIN, expect

REQUIRED: Final = os.environ.get('CYBORG_LITE_TEST_REQUIRE_BROWSER') == '1'
PROGRAMS: Final = tuple(map(shutil.which, ('chromium', 'chromedriver')))
ARGUMENTS: Final = ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage')
NEWEST: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}
LIMIT: Final = 120.0  # seconds until an element must appear, beside other suites

pytestmark = pytest.mark.skipif(
    not (all(PROGRAMS) or REQUIRED), reason='chromium or chromedriver is not installed'
)


class Browser:
    """Chromium with a session of an administrator."""

    # Any: selenium is installed in the environment of this suite only.
    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        self.url = url

    def log_in(self, user: str) -> None:
        """Fill the form of the login."""
        self.driver.get(f'{self.url}/auth/login/')
        self.fill('#id_username', user)
        self.fill('#id_password', PASSWORD)
        self.click('#loginBtn')
        self.find('.topbar')

    def open(self, path: str) -> None:
        """Open a page."""
        self.driver.get(self.url + path)

    def find(self, selector: str) -> Any:
        """Wait until an element is visible and return it."""
        from selenium.common.exceptions import TimeoutException
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support import expected_conditions as conditions
        from selenium.webdriver.support.ui import WebDriverWait

        visible = conditions.visibility_of_element_located((By.CSS_SELECTOR, selector))
        try:
            return WebDriverWait(self.driver, LIMIT).until(visible)
        except TimeoutException:
            self.save('dashboard-failure', 1300)
            raise

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true, also while the page is replaced."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        wait = WebDriverWait(self.driver, LIMIT, ignored_exceptions=ignored)
        wait.until(lambda _: condition())

    def load_picture(self, selector: str) -> int:
        """Wait until a picture is loaded and return its width."""
        picture = self.find(selector)
        self.wait_for(lambda: picture.get_property('complete'))
        return int(picture.get_property('naturalWidth'))

    def fill(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def click(self, selector: str) -> None:
        """Press a button, also one below the visible part of the page."""
        self.driver.execute_script('arguments[0].click()', self.find(selector))

    def read(self, selector: str) -> str:
        """Return the input of a field."""
        return str(self.find(selector).get_property('value'))

    def list_unlabelled(self, selector: str) -> list[str]:
        """Return the HTML of fields and buttons that have no name for assistants.

        The buttons of number fields are Horizon's own; their keys are up and down.
        """
        script = """
            const fields = arguments[0] + ' :is(input, select, textarea, button, a)';
            return [...document.querySelectorAll(fields)].filter(item =>
                item.type !== 'hidden' && item.getClientRects().length
                && !item.closest('.themable-spinner .input-group-btn-vertical')
                && !(item.labels && [...item.labels].some(l => l.innerText.trim()))
                && !item.getAttribute('aria-label') && !item.innerText.trim()
            ).map(item => item.outerHTML);
        """
        return list(self.driver.execute_script(script, selector))

    def measure_overflow(self, width: int) -> int:
        """Return by how many pixels the page exceeds a window of a width."""
        self.driver.set_window_size(width, 900)
        script = """
            const page = document.documentElement;
            return page.scrollWidth - page.clientWidth;
        """
        return int(self.driver.execute_script(script))

    def save(self, name: str, height: int, width: int = 1280) -> None:
        """Save a picture of the page if a directory is set."""
        directory = os.environ.get('CYBORG_LITE_TEST_SCREENSHOTS')
        if directory:
            self.driver.set_window_size(width, height + 143)
            self.driver.save_screenshot(str(Path(directory) / f'{name}.png'))

    def list_script_errors(self) -> list[str]:
        """Return errors of scripts in the browser since the last call."""
        log = self.driver.get_log('browser')
        return [entry['message'] for entry in log if entry['source'] == 'javascript']


@pytest.fixture
def browser(horizon: HorizonServer, cloud: KeystoneCloud) -> Iterator[Browser]:
    """Start Chromium and log in."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(PROGRAMS[0])
    for argument in (*ARGUMENTS, '--window-size=1280,1100'):
        options.add_argument(argument)
    service = webdriver.ChromeService(str(PROGRAMS[1]))
    with webdriver.Chrome(options=options, service=service) as driver:
        browser = Browser(driver, horizon.url)
        browser.log_in(cloud.admin.user)
        yield browser


def test_device_shows_picture_and_status_form(
    browser: Browser, cloud: KeystoneCloud
) -> None:
    instance = cloud.boot_bound('PGPU')
    browser.open('/admin/accelerator_devices/')
    browser.click('#devices a[href*="/status/"]')
    browser.fill('#device_status_form #id_reason', 'The fan is changed.')
    browser.open('/admin/accelerator_requests/')
    browser.click(f'a[href*="{instance.arqs[0]}"]')
    assert 'BindStarted' in browser.find('#events').text
    browser.save('dashboard-request', 700)
    [arq] = instance.list_arqs()
    browser.open('/admin/accelerator_devices/')
    browser.click('#devices tbody tr:last-child a')
    assert browser.load_picture('#topology') > 500
    browser.save('dashboard-device', 1000)
    assert arq['state'] == 'Bound'
    assert browser.list_script_errors() == []
    instance.delete()


def test_profile_is_created_and_edited_in_forms(
    browser: Browser, cloud: KeystoneCloud
) -> None:
    name = f'browser-{uuid4().hex[:8]}'
    browser.open('/admin/device_profiles/')
    browser.click('#device_profiles__action_create')
    browser.fill('#id_name', name)
    browser.fill('#id_form-0-resource_class', 'PGPU')
    browser.click('button[name=add_group]')
    browser.fill('#id_form-1-resource_class', 'FPGA')
    browser.fill('#id_form-1-forbidden_traits', 'CUSTOM_X')
    assert browser.list_unlabelled('#device_profile_form') == []
    browser.save('dashboard-create', 1300)
    browser.save('dashboard-create-phone', 1900, 390)
    browser.click('button[name=save]')
    browser.find('.alert-success')

    path = f'/v2/device_profiles/{name}'
    profile = expect(cloud.api(NEWEST).ask('GET', path), 200)['device_profile']
    browser.open('/admin/device_profiles/')
    browser.click(f'a[href$="{profile["uuid"]}/edit/"]')
    assert browser.read('#id_name') == name
    assert browser.read('#id_form-1-forbidden_traits') == 'CUSTOM_X'
    assert browser.list_unlabelled('#device_profile_form') == []
    browser.fill('#id_description', 'An FPGA.')
    browser.click('button[name=remove_group][value="0"]')
    browser.find('#id_form-0-forbidden_traits')
    browser.save('dashboard-edit', 1000)
    browser.save('dashboard-edit-phone', 1400, 390)
    browser.click('button[name=save]')
    browser.find('.alert-success')
    changed = expect(cloud.api(NEWEST).ask('GET', path), 200)['device_profile']
    assert (changed['description'], changed['groups']) == (
        'An FPGA.',
        [{'resources:FPGA': '1', 'trait:CUSTOM_X': 'forbidden'}],
    )
    assert browser.list_script_errors() == []


def test_form_of_changed_profile_offers_reload(
    browser: Browser, cloud: KeystoneCloud
) -> None:
    body = [{'name': f'p-{uuid4().hex[:8]}', 'groups': [{'resources:FPGA': '1'}]}]
    api = cloud.api(NEWEST)
    profile = expect(api.ask('POST', '/v2/device_profiles', body), 201)
    browser.open(f'/admin/device_profiles/{profile["uuid"]}/edit/')
    browser.fill('#id_description', 'First.')
    patch = [{'op': 'replace', 'path': '/description', 'value': 'Second.'}]
    expect(api.ask('PATCH', f'/v2/device_profiles/{profile["uuid"]}', patch), 200)
    browser.click('button[name=save]')
    assert 'Somebody else' in browser.find('#conflict').text
    assert browser.read('#id_description') == 'First.'
    browser.save('dashboard-conflict', 900)
    browser.save('dashboard-conflict-phone', 1300, 390)
    assert browser.measure_overflow(390) == 0
    browser.click('#conflict a')
    browser.wait_for(lambda: browser.read('#id_description') == 'Second.')
