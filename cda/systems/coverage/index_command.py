"""`cda corpus index`: the index of the corpus store, for the chosen backend and embedder, as a step of its own."""

import json

import click


@click.command("index")
@click.option("--backend", type=click.Choice(["local"]), default="local", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def build_index(backend: str, as_json: bool) -> None:
    """Build the index when this corpus has none under this embedder; a finished one is left as it is."""
    from cda.retrieval.index import place, read_manifest
    from cda.settings import load_settings
    from cda.systems.coverage.setting_up import open_search, open_store, to_stderr

    settings = load_settings()
    with open_store(settings, say=to_stderr) as store:
        folder = place(settings.index_path, store, settings.embedder)
        existed = (folder / "manifest.json").exists()
        search = open_search(settings, store, say=to_stderr)
        manifest = read_manifest(folder)
    built = 0 if existed else manifest.count
    document: dict[str, object] = {
        "target": folder.name,
        "state": "unchanged" if existed else "built",
        "backend": backend,
        "embedder": manifest.embedder,
        "manifest": search.manifest_digest,
        "added": built,
        "changed": 0,
        "unchanged": manifest.count - built,
        "orphaned": 0,
        "upserted": built,
        "deleted": 0,
        "failed": [],
        "promoted": True,
    }
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"{folder.name}: {document['state']}, {manifest.count} clauses, embedder {manifest.embedder}")
