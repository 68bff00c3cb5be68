"""The source of the claims package, read to show that no statement is put together at run time."""

import ast
from pathlib import Path

import pytest

import cda.systems.claims as package
from cda.systems.claims import queries, schema

pytestmark = pytest.mark.promise("claims.fixed")
FOLDER = Path(package.__file__).parent
HANDED_ON = {"connection", "statement", "values"}
RUNNERS = {"execute", "executemany", "executescript", "rows", "_count"}
# The generator writes a database of its own, before any server has it; its statements are constants as well.
SOURCES = sorted(file for file in FOLDER.glob("*.py") if file.name != "seed.py")


def statements(source: str) -> list[str]:
    """Every argument that is run as a statement and is neither an upper-case name, an attribute of `queries`, nor the
    parameter that one of the runners hands on."""
    odd = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RUNNERS):
            continue
        for argument in node.args[:2]:
            match argument:
                case ast.Name(id=name) if name.isupper() or name in HANDED_ON:
                    continue
                case ast.Attribute(value=ast.Name(id="queries"), attr=name) if name.isupper():
                    continue
                case ast.Tuple():
                    continue
            odd.append(ast.unparse(node))
    return odd


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_only_constants_are_run(file: Path) -> None:
    assert statements(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "connection.execute(f'SELECT {x}')",
        "connection.execute('SELECT ' + x)",
        "connection.execute('SELECT %s' % x)",
        "connection.execute('SELECT {}'.format(x))",
        "connection.execute(text)",
        "store.rows(connection, make(x), ())",
        "connection.executescript(x)",
    ],
)
def test_the_reader_of_the_source_finds_a_statement_that_is_put_together(line: str) -> None:
    assert statements(line) != []


def test_every_query_is_a_constant_with_marks_for_its_values() -> None:
    tree = ast.parse(Path(queries.__file__).read_text(encoding="utf-8"))
    held = [node.value for node in tree.body if isinstance(node, ast.Assign)]

    assert held
    assert all(isinstance(value, ast.Constant) and isinstance(value.value, str) for value in held)
    assert all("?" in value.value for value in held if isinstance(value, ast.Constant))


def test_what_is_readable_is_named_and_leaves_something_out() -> None:
    assert "enrolled_on" not in schema.READABLE["members"]
    assert not schema.FUNCTIONS & {"load_extension", "hex", "randomblob", "writefile"}
