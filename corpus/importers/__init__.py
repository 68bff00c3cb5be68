"""Importers: foreign policy files become authored files. Faulty records are listed and the good ones land.

One module a format (`ncd`, `mcd`, `markdown`, `pdf`), each a pure function of its file that returns an `ImportResult`;
`write` puts a result on disk, whole or not at all. Nothing an importer writes determines by itself: `criterion` is
null unless the user authored one.
"""
