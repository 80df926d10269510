"""The tutorial's cells run, and print what stands below them.

``python test_tutorial.py --write`` writes the outputs anew.
"""

import ast
import contextlib
import io
import json
import runpy
import sys
import unittest
from pathlib import Path

import kendall
from available import has_command

ROOT = Path(__file__).resolve().parents[4]
TUTORIAL = ROOT / "docs" / "python-tutorial.ipynb"
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


def printed(source, names):
    """Runs a cell; returns what it prints, and its last expression as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
        if value is not None:
            print(repr(value))
    return output.getvalue()


def run(notebook):
    """Every code cell with what it prints, which differs between runs where it measures."""
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield cell, printed("".join(cell["source"]), names)


class Tutorial(unittest.TestCase):
    maxDiff = None

    @unittest.skipUnless(has_command(), "the command kendall is not there")
    def test_each_cell_prints_what_stands_below_it(self):
        notebook = json.loads(TUTORIAL.read_text(encoding="utf-8"))
        for cell, found in run(notebook):
            if "measures" not in cell["metadata"].get("tags", []):
                expected = "".join("".join(each["text"]) for each in cell["outputs"])
                self.assertEqual(found, expected, "".join(cell["source"]))


class Examples(unittest.TestCase):
    def test_they_run(self):
        self.assertTrue(EXAMPLES)
        for example in EXAMPLES:
            with self.subTest(example.name), contextlib.redirect_stdout(io.StringIO()) as output:
                runpy.run_path(str(example), run_name="__main__")
            self.assertTrue(output.getvalue(), example.name)


if __name__ == "__main__":
    if "--write" in sys.argv:
        notebook = json.loads(TUTORIAL.read_text(encoding="utf-8"))
        for cell, found in run(notebook):
            lines = found.splitlines(keepends=True)
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": lines}] if lines else []
        TUTORIAL.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        unittest.main()
