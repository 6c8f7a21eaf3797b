"""The one exception for what a user can mend: a file, a folder, an option."""


class InputError(ValueError):
    """Says what was expected, what came, and what to do, in one sentence."""


def some(names: list[str], *, most: int = 3) -> str:
    """List a few names and say that there are more.

    Example:
        >>> some(["a", "b", "c", "d"])
        'a, b, c, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
