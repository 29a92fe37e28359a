"""HTML from functions: text is escaped unless it is already Html, so no name can become markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

VOID = ("img", "meta")


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def escaped(text: str) -> Html:
    return text if isinstance(text, Html) else Html(html.escape(str(text)))


def element(name: str, /, *content: str, **attributes: str | bool) -> Html:
    """<name attributes>content</name>. `class_` and the like lose their underscore; True is an attribute alone."""
    parts = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(attribute)
        elif value is not False:
            parts.append(f'{attribute}="{html.escape(str(value))}"')
    opening = f"<{' '.join(parts)}>"
    if name in VOID:
        return Html(opening)
    return Html(f"{opening}{''.join(escaped(part) for part in content)}</{name}>")


def together(parts: Iterable[str]) -> Html:
    return Html("".join(escaped(part) for part in parts))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int = 1) -> Html:
    """A table that scrolls in its own box; columns from `numbers_from` on are aligned right."""
    head = element(
        "tr", *(element("th", text, scope="col", class_=_side(i, numbers_from)) for i, text in enumerate(headings))
    )
    body = [
        element("tr", *(element("td", c, class_=_side(i, numbers_from)) for i, c in enumerate(row))) for row in rows
    ]
    return element("div", element("table", element("thead", head), element("tbody", *body)), class_="wide")


def _side(column: int, numbers_from: int) -> str:
    return "number" if column >= numbers_from else "name"
