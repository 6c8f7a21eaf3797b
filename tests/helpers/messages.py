"""What every error message must be."""


def check_one_sentence(text: str, *, longest: int = 600) -> None:
    """Check that an error message is one line without a traceback, short enough, and can be printed."""
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < longest, text
    text.encode()
