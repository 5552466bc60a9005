# SPDX-License-Identifier: Apache-2.0
"""The catalogue of attacks names tests that exist, and the page says what the catalogue says."""

import pytest
import security


def test_security_map_has_every_number_once():
    assert [a.number for a in security.CATALOGUE] == [f"T{n:02}" for n in range(1, 40)]
    assert all(a.tests or a.missing for a in security.CATALOGUE)


@pytest.mark.parametrize("attack", security.CATALOGUE, ids=lambda a: a.number)
def test_security_map_names_tests_that_exist(attack):
    lost = [t for t in attack.tests if not security.tests_of(t)]
    assert not lost, f"{attack.number}: no such test: {lost}"


def test_security_map_is_the_one_in_the_page():
    page = security.PAGE.read_text()
    assert page == security.page_with_table(page), "run tests/e2e/security.py --write"
