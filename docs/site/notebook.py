"""A notebook as a page, and executed: `python docs/site/notebook.py` runs docs/notebooks/digits.ipynb anew."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "digits.ipynb"
_FENCE = "````"


def page_of(notebook: dict[str, Any]) -> str:
    """The Markdown of a notebook: its texts, its code, and the outputs that are stored in it."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"{_FENCE}py\n{source}\n{_FENCE}")
            parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    """The richest form of an output that a page can show."""
    if output["output_type"] == "stream":
        return f"{_FENCE}text\n{''.join(output['text']).rstrip()}\n{_FENCE}"
    data = {kind: "".join(value) for kind, value in output["data"].items()}
    if "text/html" in data:
        return f'<div class="output">{" ".join(data["text/html"].split())}</div>'
    if "image/png" in data:
        packed = "".join(data["image/png"].split())
        return f'<div class="output"><img alt="output of the cell" src="data:image/png;base64,{packed}"></div>'
    return f"{_FENCE}text\n{data['text/plain'].rstrip()}\n{_FENCE}"


def executed(notebook: dict[str, Any], home: Path) -> dict[str, Any]:
    """The notebook after all its cells have run, without times; nothing is written outside of `home`.

    Args:
        notebook: its cells; outputs that are there are replaced.
        home: for what Jupyter and IPython write, and the folder that the cells run in.
    """
    import nbformat  # noqa: PLC0415 - building the site needs neither
    from nbclient import NotebookClient  # noqa: PLC0415

    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    before = {name: os.environ.get(name) for name in places}
    os.environ.update({name: str(home / name.lower()) for name in places})
    try:
        book = nbformat.reads(json.dumps(notebook), as_version=4)
        NotebookClient(
            book,
            timeout=600,
            kernel_name="python3",
            resources={"metadata": {"path": str(home)}},
            record_timing=False,
            coalesce_streams=True,
        ).execute()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("image/jpeg", None)  # Pillow offers each picture twice
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    done: dict[str, Any] = json.loads(nbformat.writes(book))
    return done


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = executed(json.loads(NOTEBOOK.read_text("utf-8")), Path(folder))
    NOTEBOOK.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", "utf-8")
