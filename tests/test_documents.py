import re
from pathlib import Path

import pytest
from tools.settings_page import PAGE, settings_page

from retainer.settings import PREFIX, declared

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])


def test_the_page_of_settings_is_current():
    assert PAGE.read_text() == settings_page(), "run make settings"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_only_settings_that_exist(document):
    known = {name for name, _ in declared()}
    known |= {f"{name}_FILE" for name in known} | {
        "RETAINER_TEST_LENGTH",
        "RETAINER_TEST_TURN",
        "RETAINER_TEST_CLUSTER",
        "RETAINER_TEST_WITHOUT",
    }
    named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b(?!\*)", document.read_text()))
    assert named - known == set()


def anchors(document):
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (document.parent / path).resolve() if path else document
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_the_readme_is_a_screen_and_a_half():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60


def test_the_architecture_takes_three_minutes():
    assert len((ROOT / "docs/architecture.md").read_text().split()) <= 900


def test_the_architecture_names_modules_that_exist():
    for path in re.findall(r"`([\w/]+(?:\.py|/))`", (ROOT / "docs/architecture.md").read_text()):
        assert any((folder / path).exists() for folder in (ROOT, ROOT / "src/retainer")), path


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/decisions/0*.md")), ids=lambda page: page.stem)
def test_a_decision_has_its_paragraphs_in_order_and_says_what_it_costs(page):
    text = page.read_text()
    order = ["Context", "Decision", "Measured", "Rejected", "Consequences"]
    labels = re.findall(r"^\*\*(\w+)\.?\*\*", text, re.MULTILINE)
    assert labels == [label for label in order if label in labels]
    assert {"Context", "Decision", "Rejected"} <= set(labels)
    assert re.match(r"Lines: .+ Without it: .+\.$", text.splitlines()[-1])
    rejected = re.split(r"^\*\*Rejected\.\*\*\n\n", text, flags=re.MULTILINE)[1].split("\n\n")[0].splitlines()
    assert [line for line in rejected if not line.startswith("- ") or len(line) > 134] == []


def test_every_decision_is_in_the_list():
    pages = {page.name for page in ROOT.glob("docs/decisions/0*.md")}
    assert set(re.findall(r"\((0[\w-]+\.md)\)", (ROOT / "docs/decisions/README.md").read_text())) == pages
    assert len({name[:4] for name in pages}) == len(pages), "each has a number of its own"
