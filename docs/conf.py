"""The site of the documentation, built by `python -m sphinx -W docs site`.

Pages are plain Markdown, which a code host shows as well. What the site adds is made here: the
navigation, of the lists of links below `<!-- pages -->`; the API reference, of the public names;
the gallery, by running the scripts of `docs/examples` (`-D plot_gallery=0` builds without that);
links from `code` to what it names and from words to the glossary; and formulas as MathML, which
browsers show without a script.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util.logging import getLogger

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

import implicit_bias as ib  # noqa: E402

project, author, release = "implicit-bias", "The implicit-bias developers", ib.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
# Scripts and notebooks that the gallery offers for downloading are no pages.
exclude_patterns = ["examples", "gallery/**/*.ipynb"]
default_role = "code"

toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode, nb_execution_in_temp = "cache", True
nb_execution_raise_on_error, nb_execution_timeout = True, -1

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "subsection_order": [f"examples/{name}" for name in ("limits", "training", "networks")],
    "filename_pattern": r"\.py$",
    "copyfile_regex": "(?!)",
    "matplotlib_animations": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = napoleon_use_rtype = False

# An attribute that several classes have leads nowhere, and need not.
suppress_warnings = ["ref.python"]

smartquotes_action = "qe"  # options begin with two hyphens, also outside of code

html_theme = "pydata_sphinx_theme"
html_title = f"implicit-bias {release}"
html_static_path = ["site.css", "which.js"]
html_css_files, html_js_files = ["site.css"], ["which.js"]
html_copy_source = html_show_sourcelink = False
html_use_index = html_domain_indices = False
html_math_renderer = "mathml"
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_toc_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

LIST = re.compile(r"<!-- (pages|cards) -->\n+((?:(?:- |  ).*\n|\n(?=- |  ))+)")
FIRST_LINK = re.compile(r"^- \[([^\]]+)\]\(([^)#\s]+)[^)]*\)", re.M)
INCLUDE = re.compile(r"<!-- include: (\S+) -->")
THUMBNAILS = re.compile(r"<!-- thumbnails: (.+) -->")
STUB = re.compile(r"\.\./implicit_bias/(\w+?)(?:/__init__)?\.pyi")
LATEX = LatexToMathML()
COMMAND = re.compile(r"(implicit-bias|compare|python -m|\.venv/bin/\w+|pip) ")
# What docstrings and programs write with the signs of a keyboard.
SIGNS = {
    "||": "\u2016", ">=": "\u2265", "<=": "\u2264", "->": "\u2192", "^2": "\u00b2",
    "lam": "\u03bb", "beta": "\u03b2", "eta": "\u03b7", "theta": "\u03b8",
}  # fmt: skip
SIGN = re.compile(
    r"\|\||>=|<=|(?<!-)->|\^2(?!\.?\d)|(?<![\w-])(?:lam|beta|eta|theta)(?![a-zA-Z0-9-])"
)
# What stands low or high beside one letter, a number or a norm: x_n, l_inf, t^(-1/2), 2^43.
SCRIPT = re.compile(
    r"(?:(?<=(?<!\w)\w)|(?<=\u2016)|(?<=sum|eta|phi|min)|(?<=\bnu))_(inf|op|max|min|\w{1,2}|\*)(?!\w)"
    r"|(?<=[\w)\]\u2016\u2019'])\^(?:\(((?:[^()]|\([^()]*\))*)\)|(-?\w+(?:\.\d+)?|\*))"
)
# Words of the glossary that other sentences use otherwise.
ORDINARY = {"direction", "exit", "gap", "limit", "live", "path", "shares", "value", "agreement"}


def navigation(app: Any, docname: str, source: list[str]) -> None:
    """Make trees of the marked lists of a page, and links within the site of those out of it."""
    text = source[0]
    if file := INCLUDE.search(text):
        text = (DOCS / file[1]).read_text("utf-8").replace("](docs/", "](")
    text = text.replace("](../CONTRIBUTING.md", "](contributing.md")
    text = text.replace("](../CHANGELOG.md", "](changes.md")
    text = text.replace("](examples/GALLERY_HEADER.rst", "](gallery/index.rst")
    text = re.sub(r"\]\(examples/(\w+/\w+)\.py", r"](gallery/\1.rst", text)
    text = THUMBNAILS.sub(lambda found: thumbnails(found[1].split()), text)
    text = STUB.sub(lambda found: f"api/{found[1].replace('__init__', 'implicit_bias')}.rst", text)

    def made(found: re.Match[str]) -> str:
        kind, items = found.groups()
        if kind == "cards":
            return f":::{{container}} cards\n{items}\n:::\n"
        (*_, head) = ["", *re.findall(r"^##+ (.+)$", text[: found.start()], re.M)]
        entries = [f"{name.replace('`', '')} <{to}>" for name, to in FIRST_LINK.findall(items)]
        tree = "\n".join(["```{toctree}", ":hidden:", f":caption: {head}", "", *entries, "```"])
        return f"{items}\n{tree}\n"

    source[0] = LIST.sub(made, text)


def thumbnails(names: list[str]) -> str:
    """Return the pictures of examples, each a link to its page."""
    links = []
    for name in names:
        folder, _, file = name.rpartition("/")
        title = (DOCS / f"examples/{name}.py").read_text("utf-8").splitlines()[1]
        made = (DOCS / f"gallery/{folder}/images/thumb").glob(f"sphx_glr_{file}_thumb.*")
        # Before an animation has run there is a picture in its place, which stays.
        shown = max(made, key=lambda one: one.stat().st_mtime).relative_to(DOCS).as_posix()
        links.append(f"[![{title}]({shown})](gallery/{name}.rst)")
    return ":::{container} thumbnails\n" + "\n".join(links) + "\n:::"


def animations(app: Any, doctree: nodes.document) -> None:
    """Let animations do without a network, and say in words what they show."""
    title = next((one.astext() for one in doctree.findall(nodes.title)), "")
    for raw in doctree.findall(nodes.raw):
        if "_anim_img" in raw.astext():
            text = re.sub(r'<link rel="stylesheet"[^>]*>', "", raw.astext(), flags=re.S)
            text = text.replace("<img id=", f'<img alt="Animation: {title}" id=')
            raw[:] = [nodes.Text(text)]
            raw.rawsource = text


def typeset(app: Any, doctree: nodes.document) -> None:
    """Write signs as mathematics does, and mark what has a form of its own.

    Cells that hold a sentence have room for it, and indented commands are a shell's.
    """
    for text in list(doctree.findall(nodes.Text)):
        above = parents(text)
        program = isinstance(above[0], nodes.literal) and re.search(r"\|\||s\.t\.", text)
        signature = any(one.tagname[:8] == "desc_sig" for one in above)
        kept = nodes.literal | nodes.literal_block | nodes.math | nodes.math_block | nodes.raw
        kept |= nodes.title | nodes.strong | nodes.emphasis | nodes.FixedTextElement
        if program or not (signature or any(isinstance(one, kept) for one in above)):
            made = SIGN.sub(lambda found: SIGNS[found[0]], text)
            made = re.sub(r"<([^<>]+,[^<>]+)>", "\u27e8\\1\u27e9", made)
            text.parent.replace(text, [*scripts(made)])
    for cell in doctree.findall(nodes.entry):
        if len(cell.astext()) > 60:
            cell["classes"].append("long")
    for block in doctree.findall(nodes.literal_block):
        if COMMAND.match(block.astext()):
            block["language"] = "sh"


def scripts(text: str) -> Iterator[nodes.Node]:
    """A text with what stands low or high in it as nodes of their own."""
    end = 0
    for found in SCRIPT.finditer(text):
        yield nodes.Text(text[end : found.start()])
        low, *high = found.groups()
        inside = nodes.Text((low or high[0] or high[1]).replace("inf", "\u221e"))
        yield (nodes.subscript if low else nodes.superscript)("", "", inside)
        end = found.end()
    yield nodes.Text(text[end:])


def reference(app: Any) -> None:
    """Write a page for each namespace, with the names that no page before it has."""
    (DOCS / "api").mkdir(exist_ok=True)
    names = [name for name in ib.__all__ if not name.startswith("__")]
    spaces = [name for name in names if inspect.ismodule(getattr(ib, name))]
    own = sorted(set(names) - set(spaces))
    shown: list[object] = []
    for space in ("", *spaces):
        path = f"implicit_bias.{space}".rstrip(".")
        module = import_module(path)
        listed = sorted(set(module.__all__) - set(names)) if space else own
        listed.sort(key=lambda name: not inspect.isfunction(getattr(module, name)))
        lines = [path, "=" * len(path), "", f".. module:: {path}", "", inspect.getdoc(module), ""]
        for name in listed:
            lines += [f"- `{name}`: {first_line(getattr(module, name))}"]
        for name in listed:
            thing = getattr(module, name)
            if any(thing is one for one in shown):  # a name of two namespaces
                continue
            shown.append(thing)
            kind, options = "function" if inspect.isfunction(thing) else "data", []
            if inspect.isclass(thing):
                kind = "exception" if issubclass(thing, BaseException) else "class"
                options = ["   :members:", "   :show-inheritance:"]
            lines += ["", f".. auto{kind}:: {name}", *options]
        target = DOCS / "api" / f"{space or 'implicit_bias'}.rst"
        text = "\n".join(lines) + "\n"
        if not target.exists() or target.read_text("utf-8") != text:
            target.write_text(text, "utf-8")


def formulas(app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Keep indented formulas line by line, and leave out what a constant's class says of itself."""
    if what == "data" and inspect.getdoc(thing) == inspect.getdoc(type(thing)):
        lines.clear()
    text = re.sub(
        r"^( *)(?! |\.\. )(\S.*(?<!:))\n\n(?=\1    \S)",
        r"\1\2\n\n\1::\n\n",
        "\n".join(lines),
        flags=re.M,
    )
    lines[:] = text.split("\n")


def skipped(app: Any, what: str, name: str, thing: object, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn makes for its routing of metadata."""
    return True if re.fullmatch(r"[sg]et_\w+_request", name) else None


def first_line(thing: object) -> str:
    """The first sentence of a docstring; a constant has that of its class, which is not its own."""
    if not (inspect.isfunction(thing) or inspect.isclass(thing)):
        return "a constant."
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def glossary() -> dict[str, tuple[str, str]]:
    """The anchor and the meaning of each word."""
    text = (DOCS / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-Za-z][^|]*?) \| ([^|]+) \|$", text, re.M)
    found = {}
    for words, meaning in rows:
        plain = "" if "$" in meaning else re.sub(r"[`*]", "", meaning)
        for word in words.replace("`", "").split(", "):
            found[word] = nodes.make_id(f"word-{words}"), plain
    return {word: found[word] for word in found if word not in {"word", *ORDINARY}}


def links(app: Any, doctree: nodes.document, docname: str) -> None:
    """Lead from code to the reference, and from the first use of a word to the glossary."""
    objects = app.env.domains.python_domain.objects
    if not hasattr(app, "short_names"):
        app.words = glossary()
        app.short_names = {
            name.rpartition(".")[2]: name
            for name, entry in objects.items()
            if entry.objtype in ("function", "class", "exception")
        }

    def linked(text: str, to: str, anchor: str, **said: str) -> nodes.reference:
        uri = app.builder.get_relative_uri(docname, to) + f"#{anchor}"
        return nodes.reference("", text, internal=True, refuri=uri, **said)

    def free(node: nodes.Node) -> bool:
        return not any(
            isinstance(above, nodes.reference | nodes.title | nodes.literal | nodes.math)
            or above.tagname.startswith("desc_sig")
            for above in parents(node)
        )

    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext()
        found = re.fullmatch(r"(ib\.|implicit_bias\.)?(\w[\w.]*)(\(.*\))?", text)
        if not found or not free(literal):
            continue
        # `run` may be many things, but in the reference.
        plain = found[2].islower() and "_" not in found[2] and not found[3]
        plain = plain and not docname.startswith("api")
        name = f"implicit_bias.{found[2]}" if found[1] else app.short_names.get(found[2], "")
        if name in objects and (found[1] or not plain):
            entry = objects[name]
            whole = linked("", entry.docname, entry.node_id)
            literal.replace_self(whole)
            whole += literal

    if docname == "glossary":
        for row in doctree.findall(nodes.row):
            row["ids"].append(nodes.make_id(f"word-{row[0].astext()}"))
    if docname == "glossary" or docname.startswith("api"):
        return
    left = dict(app.words)
    for paragraph in doctree.findall(nodes.paragraph):
        for text in list(paragraph.findall(nodes.Text)):
            if not left or not free(text):
                continue
            word = re.compile(
                rf"(?<![-\w])({'|'.join(map(re.escape, sorted(left, key=len)[::-1]))})s?(?![-\w])"
            )
            found = word.search(text)
            if found:
                anchor, meaning = left.pop(found[1])
                link = linked(found[0], "glossary", anchor, reftitle=meaning, classes=["word"])
                before, after = nodes.Text(text[: found.start()]), nodes.Text(text[found.end() :])
                text.parent.replace(text, [before, link, after])


def parents(node: nodes.Node) -> list[nodes.Node]:
    above = []
    while node.parent is not None:
        node = node.parent
        above.append(node)
    return above


def formula(visitor: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML."""
    block = isinstance(node, nodes.math_block)
    try:
        made = LATEX.convert_with_local_state(node.astext(), displaystyle=block)
    except LatexError as error:
        getLogger(__name__).warning("%s in %r", error, node.astext(), location=node)
        made = ""
    visitor.body.append(f'<div class="math">{made}</div>\n' if block else made)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", reference)
    app.connect("source-read", navigation)
    app.connect("doctree-read", animations)
    app.connect("doctree-read", typeset)
    app.connect("autodoc-process-docstring", formulas, priority=100)
    app.connect("autodoc-skip-member", skipped)
    app.connect("doctree-resolved", links)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
