"""Programs of the table of models as MathML, from the one line in which the terminal shows them."""

from __future__ import annotations

import re
from html import escape

TOKEN = re.compile(
    r"\s+|s\.t\.|\|\||\+-|>=|[A-Za-z]+(?:-[A-Za-z]+)+|[A-Za-z]+|\d+|.", flags=re.DOTALL
)
LETTERS = {"zeta": "ζ", "beta": "β", "lam": "λ", "yhat": "ŷ"}
OPERATORS = {"sum": "∑", "min": "min", "argmin": "argmin", "s.t.": "s.t.", ">=": "≥", "+-": "±",
             "-": "−"}  # fmt: skip
# By what opens them, what closes a pair and how the two look.
PAIRS = {"||": ("||", "‖", "‖"), "|": ("|", "|", "|"), "<": (">", "⟨", "⟩"), "(": (")", "(", ")")}
SPACED = {"s.t.", "min", "argmin"}


def mathml(text: str) -> list[str]:
    """Convert every formula of a line, the parts between its semicolons, to an element `math`.

    Names of one letter and the Greek ones are variables, `_` and `^` bind a script to what stands
    before them, `<a, b>` is an inner product, and every other word is a word. A line without an
    equation is a paragraph.
    """
    if "=" not in text:
        return [f"<p>{escape(text)}</p>"]
    parts = [part.strip() for part in text.split(";")]
    return [
        f'<math display="block" alttext="{escape(part)}">{"".join(_Formula(part).row())}</math>'
        for part in parts
    ]


class _Formula:
    """A reader of tokens, one after the other."""

    def __init__(self, text: str) -> None:
        self._tokens = TOKEN.findall(text)

    def row(self, end: str = "") -> list[str]:
        """Return the elements up to the token `end`, which is consumed too."""
        found: list[str] = []
        while self._tokens and self._tokens[0] != end:
            if self._tokens[0].isspace():
                self._tokens.pop(0)
            else:
                found.append(self._scripted())
        if self._tokens:
            self._tokens.pop(0)
        return found

    def _scripted(self) -> str:
        base = self._atom()
        scripts = {"_": "", "^": ""}
        while self._tokens and self._tokens[0] in scripts:
            kind = self._tokens.pop(0)
            scripts[kind] = self._script()
        below, above = scripts["_"], scripts["^"]
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        if below:
            return f"<msub>{base}{below}</msub>"
        return f"<msup>{base}{above}</msup>" if above else base

    def _script(self) -> str:
        if self._tokens[0] == "(":  # which the script makes needless
            self._tokens.pop(0)
            return f"<mrow>{''.join(self.row(')'))}</mrow>"
        found = [self._atom()]
        # An index of several parts, as in zeta_h,c_h(n): no blank behind the comma.
        while len(self._tokens) > 1 and self._tokens[0] == "," and self._tokens[1].isalpha():
            found += [_operator(self._tokens.pop(0)), self._scripted()]
            if self._tokens[:1] == ["("]:
                found.append(self._atom())
        return f"<mrow>{''.join(found)}</mrow>"

    def _atom(self) -> str:
        token = self._tokens.pop(0)
        if token == "sqrt" and self._tokens[:1] == ["("]:
            self._tokens.pop(0)
            return f"<msqrt>{''.join(self.row(')'))}</msqrt>"
        if token in PAIRS:
            end, left, right = PAIRS[token]
            inside = "".join(self.row(end))
            return f"<mrow>{_fence(left)}{inside}{_fence(right)}</mrow>"
        if token.isdigit():
            return f"<mn>{token}</mn>"
        if token in LETTERS or (token.isalpha() and len(token) == 1):
            return f"<mi>{LETTERS.get(token, token)}</mi>"
        if token == "At":
            return "<mrow><mi>A</mi><mi>t</mi></mrow>"
        if token[0].isalpha() and token not in OPERATORS:
            return f"<mtext>&#160;{escape(token)}&#160;</mtext>"
        return _operator(token)


def _operator(token: str) -> str:
    space = ' lspace="0.6em" rspace="0.4em"' if token in SPACED else ""
    return f"<mo{space}>{escape(OPERATORS.get(token, token))}</mo>"


def _fence(sign: str) -> str:
    return f'<mo stretchy="false">{sign}</mo>'
