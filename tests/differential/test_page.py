"""docs/compatibility.md tells users what the code and the list of accepted differences say."""

from .page import PAGE, renewed


def test_the_page_of_compatibility_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page == renewed(page), "run `python -m tests.differential.page`"
