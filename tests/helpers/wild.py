"""Values that nobody means, for every key of a file."""

# as TOML writes them
WILD = {
    "text": '"zzz"',
    "without quotes": "zzz zzz",
    "nothing": "",
    "empty text": '""',
    "blank": '" "',
    "long text": '"' + "x" * 100_000 + '"',
    "unicode": '"Größe 中 😀"',
    "control characters": r'"a\u0000b\n\u007f"',
    "backslash": "'\\'",
    "empty list": "[]",
    "list of text": '["zzz"]',
    "list of empty text": '[""]',
    "list of numbers": "[1, 2]",
    "list of wild numbers": "[nan, inf]",
    "list of huge numbers": "[1, 1" + "0" * 30 + "]",
    "list of negative numbers": "[-1, -1]",
    "mixed list": '[1, "a", true]',
    "list of lists": "[[[[1]]]]",
    "deep list": "[" * 5000 + "]" * 5000,
    "middling list": "[" * 200 + "]" * 200,
    "long list": "[" + "1," * 20_000 + "]",
    "table": "{ a = 1 }",
    "true": "true",
    "false": "false",
    "zero": "0",
    "one": "1",
    "negative": "-1",
    "fraction": "0.5",
    "negative fraction": "-0.5",
    "negative zero": "-0.0",
    "2^31": str(2**31),
    "2^32": str(2**32),
    "2^64": str(2**64),
    "huge": "1" + "0" * 30,
    "negative and huge": "-1" + "0" * 30,
    "thousands of digits": "9" * 6000,
    "large float": "1e300",
    "tiny float": "1e-320",
    "nan": "nan",
    "inf": "inf",
    "negative inf": "-inf",
    "date": "1979-05-27",
    "time": "07:32:00",
    "two lines": "1\nbatch = 2",
}


def one_sentence(text: str) -> None:
    """Check that an error is a sentence that can be printed."""
    assert "\n" not in text
    assert "Traceback" not in text
    assert len(text) < 600
    text.encode()
