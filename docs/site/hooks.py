"""What MkDocs does not know of our documents: GitHub's Markdown, files outside of docs/, and the table of settings."""

from __future__ import annotations

import html
import json
import os
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCUMENTS = {name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")} | {"README.md": "about.md"}
"""At the repository's root, where people and GitHub look for them -> pages of the site (MkDocs would take a README for
the folder's index)."""
CODE = "code"
"""Folder of the site for source files that a document links to."""
NOTEBOOK = "notebooks/digits.ipynb"
"""Becomes the page notebook.md."""
SETTINGS = "<!-- settings -->"
_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(((?!https?:|mailto:|#)[^)\s]+)\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+\S")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the documents of the root, and every source file that some page links to, as pages."""
    for name, page in DOCUMENTS.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, "notebook.md", content=_notebook_page()))
    linked = {target for file in files.documentation_pages() for target in _outside(file)}
    for target in sorted(linked):
        made = File.generated(config, f"{CODE}/{target}.md", content=_code_page(target))
        made.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(made)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that leave docs/ lead to the site's own copies; lists and tables begin as on GitHub; settings are told."""
    del config, files
    if SETTINGS in markdown:
        markdown = markdown.replace(SETTINGS, settings_table())
    if page.file.src_uri.startswith(f"{CODE}/"):
        return markdown
    home = _home(page.file)
    return with_blank_lines(_LINK.sub(lambda link: _rewritten(link, home, page.file), markdown))


def with_blank_lines(markdown: str) -> str:
    """A blank line before lists and tables that follow a paragraph: GitHub needs none, Python-Markdown does."""
    lines: list[str] = []
    fenced = listed = False
    for line in markdown.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            listed = listed and line.startswith(" ")
        elif not fenced:
            item, row = bool(_ITEM.match(line)), line.startswith("|")
            before = lines[-1] if lines else ""
            if before.strip() and ((item and not listed) or (row and not before.startswith("|"))):
                lines.append("")
            listed = item or (listed and (not line.strip() or line.startswith(" ") or bool(before.strip())))
        lines.append(line)
    return "\n".join(lines) + "\n"


def _home(file: File) -> Path:
    """The folder that a document's links start from, in the repository."""
    return ROOT if file.src_uri in DOCUMENTS.values() else (ROOT / "docs" / file.src_uri).parent


def _goal(target: str, home: Path) -> str:
    """Where a link leads, relative to the repository's root; "" where it leaves even that."""
    path = Path(os.path.normpath(home / target.partition("#")[0]))
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""


def _outside(file: File) -> set[str]:
    """Source files that a document links to."""
    goals = {_goal(target, _home(file)) for _, target in _LINK.findall(file.content_string)}
    ours = {goal for goal in goals if goal and not goal.startswith("docs/") and goal not in DOCUMENTS}
    return {goal for goal in ours if (ROOT / goal).is_file()}


def _rewritten(link: re.Match[str], home: Path, file: File) -> str:
    label, target = link.groups()
    goal, anchor = _goal(target, home), target.partition("#")[2]
    if not goal:
        return link.group(0)
    if goal.startswith("docs/"):
        inside = goal.removeprefix("docs/")
        if inside == NOTEBOOK and file.src_uri != "notebook.md":
            inside = "notebook.md"
        if (ROOT / goal).is_dir():
            inside = "decisions/0001-our-theorem.md" if inside == "decisions" else f"{inside}/index.md"
    elif goal in DOCUMENTS:
        inside = DOCUMENTS[goal]
    elif (ROOT / goal).is_file():
        inside = f"{CODE}/{goal}.md"
    else:
        return label.strip("[]")  # a folder of source files has no page
    relative = os.path.relpath(inside, Path(file.src_uri).parent)
    return f"{label}({Path(relative).as_posix()}{'#' + anchor if anchor else ''})"


def _notebook_page() -> str:
    sys.path.insert(0, str(Path(__file__).parent))
    from notebook import page_of  # noqa: PLC0415 - a sibling, which MkDocs does not know of

    made = page_of(json.loads((ROOT / "docs" / NOTEBOOK).read_text("utf-8")))
    return f"{made}\n[The notebook itself]({NOTEBOOK}), to run and to change.\n"


def _code_page(target: str) -> str:
    language = {".py": "python", ".toml": "toml"}.get(Path(target).suffix, "text")
    return f"# {Path(target).name}\n\n`{target}`\n\n````{language}\n{(ROOT / target).read_text('utf-8')}````\n"


def settings_table() -> str:
    """Return a table of every setting with its option and default."""
    sys.path.insert(0, str(ROOT / "src"))
    from paretoda.run.settings import SETTINGS  # noqa: PLC0415 - found by the line above

    rows = ["| setting | option | default | what it is |", "|---|---|---|---|"]
    for name, each in SETTINGS.items():
        rows.append(f"| `{name}` | `{each.option}` | {_default(each.default)} | {_cell(each.description)} |")
    return "\n".join(rows)


def _default(value: object) -> str:
    if value is None or value == ():
        return ""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"`{value}`"


def _cell(text: str) -> str:
    return html.escape(text, quote=False).replace("|", "\\|")
