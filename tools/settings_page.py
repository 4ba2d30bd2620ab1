"""Write docs/settings.md, a row for each setting, from the declared settings: python -m tools.settings_page."""

from pathlib import Path

from retainer.settings import declared, shown

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
HEAD = """\
# Settings

Every setting has a default, so none is required. Set one as an environment variable or in a file `.env` in the folder
in which the server starts; the environment wins. `NAME_FILE` names a file that holds the value, for passwords. An
unknown name or an invalid value stops the start with a message. `retainer config` shows the values in force and their
sources.

`make settings` writes this page from `src/retainer/settings.py`.
"""


def settings_page() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, item in declared():
        form, sentence = item.metadata["form"], item.metadata["sentence"]
        parts.append(f"## {name}\n\n{sentence}\n\n- Takes: {form}\n- Default: `{shown(item.default)}`\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
