# SPDX-License-Identifier: Apache-2.0
"""A person signs in to a tenant's site by its identity pool, as a browser would."""

import re

from lib.local_driver import Browser

PASSWORD = "Correct-horse-7"


def follow(site, browser):
    """From the sign-in page to the provider's form."""
    page = browser.open(site.url + "/wp-login.php")
    link = re.search(r'href="([^"]*leasehold=signin[^"]*)"', page.text)
    assert link, page
    page = browser.open(link.group(1).replace("&amp;", "&").replace("&#038;", "&"))
    assert page.status == 200 and "/identity/%s/authorize" % site.tenant in page.url, page
    return page


def sign_in(site, email, password, **more):
    browser = Browser()
    form = follow(site, browser)
    return browser, browser.open(form.url, {"email": email, "password": password, **more})


def who(site, browser):
    page = browser.open(site.url + "/wp-admin/profile.php")
    found = re.search(r'id="email"[^>]*value="([^"]*)"', page.text)
    return found and found.group(1)
