"""``python -m kendall`` is the command kendall."""

from kendall._command import main

main()
