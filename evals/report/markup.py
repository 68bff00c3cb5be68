"""HTML in which every string is escaped unless it was made here: narratives are hostile."""

from collections.abc import Iterable
from html import escape


class Html(str):
    """Text that is markup already. Only this module makes it from strings."""

    __slots__ = ()


Child = Html | str | int | float | None | Iterable["Child"]
_VOID = frozenset({"input", "meta", "rect", "line", "circle", "path", "polyline"})


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """An element. Attribute names lose a trailing underscore and turn others into hyphens (`class_`, `aria_live`);
    True is a bare attribute, None and False are left out."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{shown}>") if name in ("input", "meta") else Html(f"<{name}{shown}/>")
    return Html(f"<{name}{shown}>{text(children)}</{name}>")


def text(child: Child) -> Html:
    """The child as markup: strings and numbers escaped, None nothing, others one after the other."""
    if isinstance(child, Html):
        return child
    if child is None:
        return Html("")
    if isinstance(child, str | int | float):
        return Html(escape(str(child)))
    return Html("".join(map(text, child)))


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], caption: str) -> Html:
    """A table whose first column names the row; it scrolls inside its own box on a narrow screen."""
    body = (
        tag("tr", tag("th", first, scope="row"), (tag("td", cell) for cell in rest)) for first, *rest in map(list, rows)
    )
    headings = tag("tr", (tag("th", name, scope="col") for name in head))
    return tag(
        "div",
        tag("table", tag("caption", caption), tag("thead", headings), tag("tbody", list(body))),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def plain(source: str) -> Html:
    """Markup of our own files, style and script: refused when it could end its own element."""
    if "</" in source:
        raise ValueError("an inlined file must not hold an end tag")
    return Html(source)


def _attribute(name: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escape(str(value))}"'
