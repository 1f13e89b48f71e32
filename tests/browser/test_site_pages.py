"""The documentation site in chromium: nothing comes from elsewhere, nothing complains or is wider than a phone."""

import pytest
from docs.test_site import site

__all__ = ["site"]
PAGES = [
    "index",
    "get-started",
    "which-method",
    "how-it-works",
    "own-loop",
    "notebook",
    "results",
    "performance",
    "faq",
]
PAGES += ["reference/settings", "reference/backward", "methods/alignments", "code/src/paretoda/core/problem.py"]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_are_whole_without_a_network(site, opened, width, scheme):
    for name in PAGES:
        shown = opened(site / f"{name}.html", width=width, color_scheme=scheme)
        assert all(url.startswith(("file:", "data:", "blob:")) for url in shown.requests), name
        assert shown.errors == [], name
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert shown.page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)"), (
            name
        )
        paper = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper.strip("rgb()").split(","))) < 300) == (scheme == "dark"), name
        shown.context.close()
