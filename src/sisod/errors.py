"""Exceptions for what a user can mend: a file, a folder, an option."""


class InputError(ValueError):
    """Says what was expected, what came, and what to do, in one sentence."""


class UsageError(InputError):
    """The same, for a command or call that makes no sense as it stands; exit code 2."""


def printable(name: str) -> str:
    r"""Return a name with control characters spelled out, so that a message stays one line.

    Example:
        >>> print(printable("two\nlines"))
        two\nlines
    """
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)


def some(names: list[str], *, most: int = 3) -> str:
    """List a few names and say that there are more.

    Example:
        >>> some(["a", "b", "c", "d"])
        'a, b, c, ...'
    """
    return ", ".join(printable(name) for name in names[:most]) + (", ..." if len(names) > most else "")
