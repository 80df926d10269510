"""The installed package: its files, its version and its command."""

import ast
import os
import subprocess
import sys
import tempfile
import unittest
from importlib import metadata
from pathlib import Path

import kendall
from kendall import _kendall

FOLDER = Path(kendall.__file__).parent


class Package(unittest.TestCase):
    def test_it_has_one_version(self):
        self.assertEqual(metadata.version("kendall"), kendall.__version__)

    def test_its_types_are_there_and_name_what_is_compiled(self):
        self.assertTrue((FOLDER / "py.typed").exists())
        stubs = ast.parse((FOLDER / "_kendall.pyi").read_text(encoding="utf-8"))
        names = next(ast.literal_eval(each.value) for each in stubs.body if isinstance(each, ast.Assign))
        self.assertEqual(names, sorted(name for name in vars(_kendall) if not name.startswith("__")))

    @unittest.skipUnless((FOLDER / "bin" / "kendall.xz").exists(), "the package is without its command")
    def test_its_command_is_unpacked_once(self):
        script = Path(sys.executable).parent / "kendall"
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            environment.pop("KENDALL", None)
            for words in ([script], [sys.executable, "-m", "kendall"]):
                printed = subprocess.check_output([*words, "--version"], env=environment, text=True)
                self.assertEqual(printed.split()[1], kendall.__version__)
            self.assertEqual(len(list(Path(cache).glob("kendall/*/*"))), 1)


if __name__ == "__main__":
    unittest.main()
