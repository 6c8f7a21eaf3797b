"""How the site is built: `make docs`. A page that index.md does not list fails the build."""

import re
from importlib.metadata import version as installed

from docutils import nodes
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

project = "sisod"
version = release = installed("sisod")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"sisod {version}"
html_static_path = ["_static"]
html_css_files = ["sisod.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

myst_heading_anchors = 3  # so that page.md#heading is a link, and a wrong one a warning
default_role = "code"  # a single backtick means the same in docstrings as in pages

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
maximum_signature_line_length = 90

_ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
_ARRAY = re.compile(
    r"~numpy\.ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~numpy\.dtype\[(~?[\w.]+)\]\]"
)


def setup(app: Sphinx) -> None:
    """Tidy what readers see."""
    app.connect("autodoc-process-signature", _short_types)
    app.connect("doctree-read", _without_blank_ends)


def _short_types(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, signature: str, result: str
) -> tuple[str | None, str | None]:
    """Name NumPy's types as the source does, not by what they stand for."""

    def short(text: str | None) -> str | None:
        if text is None:
            return None
        named = _ARRAY.sub(r"NDArray[\1]", text.replace(_ARRAY_LIKE, "ArrayLike"))
        return named.replace("<factory>", "...")

    return short(signature), short(result)


def _without_blank_ends(_app: Sphinx, doctree: nodes.document) -> None:
    """Drop the empty line that an executed example needs before its closing fence."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource = text
        block.children = [nodes.Text(text)]
