"""What the machine of the tests has beside the package."""

import importlib.util

import kendall


def has(library):
    """Whether a library is installed."""
    return importlib.util.find_spec(library) is not None


def has_command():
    """Whether the command kendall is there."""
    try:
        kendall.command()
    except kendall.KendallError:
        return False
    return True
