"""How a claim names the part of a criterion that it speaks of, shared by whoever writes claims and whoever judges."""

from cda.criteria.rules import Role

ROOTS: dict[Role, str | None] = {
    Role.COVERS: "covers_if",
    Role.EXCLUDES: "excludes_if",
    Role.LIMIT: "limit",
    Role.REQUIRES: "requires",
    Role.SCOPE: "population",
    Role.INDIVIDUAL: "states",
    Role.KEEPS: "keeps",
    Role.WAIVES: "patch",
    Role.REPLACES_LIMIT: "patch",
    Role.ADDS: "patch",
    Role.NOT_AUTHORED: None,
}
"""The criterion path of a claim about a clause as a whole, by what the clause does for the line."""
