"""Write docs/settings.md from the declared settings: python -m tools.settings_page."""

from pathlib import Path

from retainer.settings import declared, setting_text

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
HEAD = """\
# Settings

Every setting has a default, so none is required. Set one as an environment variable, or in a file `.env` in the
folder in which the command runs; the environment wins. For passwords, `NAME_FILE` names a file that holds the value.
With an unknown name or an invalid value the server does not start, and says why. `retainer config` shows the values
in force and their sources. The address, the port and the number of workers are options of `retainer serve`.

`make settings` writes this page from `src/retainer/settings.py`.

| setting | meaning | value | default |
|---|---|---|---|
"""


def settings_page() -> str:
    """Return the page."""
    rows = []
    for name, item in declared():
        form, sentence, default = item.metadata["form"].text, item.metadata["sentence"], setting_text(item.default)
        rows.append(f"| `{name}` | {sentence} | {form} | `{default}` |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
