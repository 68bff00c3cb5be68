"""The source of the claims package, read to show that no statement is put together at run time."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cda.systems.claims as package
from cda.systems.claims import queries, schema

pytestmark = pytest.mark.promise("claims.fixed")
FOLDER = Path(package.__file__).parent
RUNNERS = {"execute": 0, "rows": 1, "_count": 1}  # and where each of them has its statement
NEVER = {
    "executemany",
    "executescript",
    "create_function",
    "enable_load_extension",
    "load_extension",
    "set_trace_callback",
}
HANDED_ON = {("store.py", "statement"), ("tools.py", "statement")}  # by `rows` and `_count` themselves
# The generator writes a database of its own, and no server imports it.
SOURCES = sorted(file for file in FOLDER.glob("*.py") if file.name != "seed.py")


def constants(source: str) -> set[str]:
    """The names that a module gives one text and nothing else, ever."""
    tree = ast.parse(source)
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    texts = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str())) if stored.count(name) == 1:
                texts.add(name)
    return texts


def odd(source: str, file: str = "") -> list[str]:
    """Every place where something is run that is no constant of the module or of `queries`; every runner that is handed
    about instead of being called, and every one that is never used."""
    tree, own = ast.parse(source), constants(source)
    known = constants(Path(queries.__file__).read_text(encoding="utf-8"))
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=attr) if attr in NEVER or (attr in RUNNERS and id(node) not in called):
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in RUNNERS:
                match node.args[RUNNERS[attr] : RUNNERS[attr] + 1]:
                    case [ast.Name(id=name)] if name in own or (file, name) in HANDED_ON:
                        continue
                    case [ast.Attribute(value=ast.Name(id="queries"), attr=name)] if name in known:
                        continue
                    case _:
                        found.append(ast.unparse(node))
            case ast.Name(id="getattr" | "eval" | "exec"):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_only_constants_are_run(file: Path) -> None:
    assert odd(file.read_text(encoding="utf-8"), file.name) == []


@pytest.mark.parametrize(
    "line",
    [
        "connection.execute(f'SELECT {x}')",
        "connection.execute('SELECT ' + x)",
        "connection.execute('SELECT %s' % x)",
        "connection.execute('SELECT {}'.format(x))",
        "connection.execute(text)",
        "connection.execute(statement)",
        "connection.execute(queries.MADE_UP)",
        "connection.execute(other.CLAIM)",
        "connection.execute(*parts)",
        "connection.execute(sql=x)",
        "A = 'SELECT 1'\nA = x\nconnection.execute(A)",
        "A = 'SELECT 1'\nA += x\nconnection.execute(A)",
        "A = f'SELECT {x}'\nconnection.execute(A)",
        "store.rows(connection, make(x), ())",
        "connection.executescript('SELECT 1')",
        "run = connection.execute",
        "getattr(connection, 'execute')(x)",
    ],
)
def test_the_reader_of_the_source_finds_a_statement_that_is_put_together(line: str) -> None:
    assert odd(line) != []


def test_every_query_is_a_constant_with_marks_for_its_values() -> None:
    source = Path(queries.__file__).read_text(encoding="utf-8")
    assigned = [node for node in ast.parse(source).body if not isinstance(node, ast.Expr)]

    assert len(constants(source)) == len(assigned) > 10
    assert all("?" in getattr(queries, name) for name in constants(source))


def test_the_server_does_not_import_what_writes() -> None:
    listed = "import sys, cda.systems.claims.server; print('cda.systems.claims.seed' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True, timeout=60)

    assert told.stdout.strip() == "False"


def test_what_is_readable_is_named_and_leaves_something_out() -> None:
    assert "enrolled_on" not in schema.READABLE["members"]
    assert not schema.FUNCTIONS & {"load_extension", "hex", "randomblob", "writefile"}
