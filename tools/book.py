"""What the book has beside the pages of docs/: those at the root, and the notebook. Other links out of docs/ become text."""

import json
import re
import shutil
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
OF_ROOT = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
NOTEBOOK = "python-tutorial.ipynb"
made = tempfile.TemporaryDirectory()


def fenced(language, text):
    return f"```{language}\n{text.rstrip()}\n```\n"


def cell(cell):
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source + "\n"
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
    return fenced("python", source) + ("\n" + fenced("text", printed) if printed else "")


def on_files(files, config):
    def add(name, folder):
        files.append(File(name, str(folder), config["site_dir"], config["use_directory_urls"]))

    for name in OF_ROOT:
        add(name, ROOT)
    cells = json.loads((ROOT / "docs" / NOTEBOOK).read_text())["cells"]
    name = NOTEBOOK.replace(".ipynb", ".md")
    Path(made.name, name).write_text("\n".join(map(cell, cells)))
    add(name, made.name)
    return files


def on_page_markdown(markdown, page, config, files):
    def outside(link):
        text, target = link.groups()
        return f"[{text}]({target})" if target in OF_ROOT else text

    if page.file.src_path in OF_ROOT:
        markdown = markdown.replace("](docs/", "](")
    markdown = markdown.replace(f"({NOTEBOOK})", f"({NOTEBOOK.replace('.ipynb', '.md')})")
    return re.sub(r"\[([^]]*)\]\(\.\./([^)]*)\)", outside, markdown)


def on_page_content(html, page, config, files):
    """Gives tables their style. Unlike GitHub, mkdocs shows the backslash of a bar in code."""
    html = re.sub("<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
    return html.replace("<table>", '<table class="docutils">')


def on_post_build(config):
    """Debian's package of the theme has jQuery under another name, and lacks two scripts that the pages load."""
    scripts = Path(config["site_dir"], "js")
    jquery = scripts / "jquery-3.6.0.min.js"
    if not jquery.exists():
        shutil.copy(next(scripts.glob("jquery-*.js")), jquery)
    for name in ["theme_extra.js", "html5shiv.min.js"]:
        (scripts / name).touch()
    with Path(config["site_dir"], "css/theme_extra.css").open("a") as style:
        style.write("\n.wy-table-responsive table.docutils td { white-space: normal; }\n")
