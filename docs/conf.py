"""Sphinx settings, used by `make docs`. A page that index.md does not list fails the build."""

import re
from importlib.metadata import version as installed

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import stringify_annotation
from sphinx.writers.html5 import HTML5Translator

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
html_math_renderer = (
    "mathml"  # see setup: browsers draw MathML themselves, MathJax would come from a CDN
)

myst_enable_extensions = ["dollarmath"]  # $...$ and $$...$$, as on GitHub
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


_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> None:
    """Register the math renderer, and shorten signatures and examples."""
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))
    app.connect("autodoc-process-signature", _short_types)
    app.connect("doctree-read", _without_blank_ends)


def _write_math(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML; a LaTeX command that docutils does not know is a warning."""
    try:
        writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    except MathError as error:
        _log.warning("formula %r: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


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
