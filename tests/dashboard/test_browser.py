# SPDX-License-Identifier: Apache-2.0
"""An administrator who works with the panels in a headless Chromium.

With ``CYBORG_LITE_TEST_SCREENSHOTS`` set to a directory, the pages are saved there.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.servers.horizon import HorizonServer
from tests.servers.keystone import PASSWORD
from tests.servers.keystone_cloud import KeystoneCloud

REQUIRED: Final = os.environ.get('CYBORG_LITE_TEST_REQUIRE_BROWSER') == '1'
PROGRAMS: Final = tuple(map(shutil.which, ('chromium', 'chromedriver')))
ARGUMENTS: Final = ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage')
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
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support import expected_conditions as conditions
        from selenium.webdriver.support.ui import WebDriverWait

        visible = conditions.visibility_of_element_located((By.CSS_SELECTOR, selector))
        return WebDriverWait(self.driver, LIMIT).until(visible)

    def load_picture(self, selector: str) -> int:
        """Wait until a picture is loaded and return its width."""
        from selenium.webdriver.support.ui import WebDriverWait

        picture = self.find(selector)
        wait = WebDriverWait(self.driver, LIMIT)
        wait.until(lambda _: picture.get_property('complete'))
        return int(picture.get_property('naturalWidth'))

    def fill(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def click(self, selector: str) -> None:
        """Press a button, also one below the visible part of the page."""
        self.driver.execute_script('arguments[0].click()', self.find(selector))

    def save(self, name: str, height: int) -> None:
        """Save a picture of the page if a directory is set."""
        directory = os.environ.get('CYBORG_LITE_TEST_SCREENSHOTS')
        if directory:
            self.driver.set_window_size(1280, height + 143)
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
    instance = cloud.boot('PGPU')
    cloud.until(instance.is_resolved)
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
