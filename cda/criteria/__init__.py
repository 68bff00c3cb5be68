"""Dated coverage rules as data: parsed, patched by riders, evaluated in three-valued logic, explained. No text is read.

`decide_line` (line) answers for one requested code; `validate_criterion` (criterion) is what `cda corpus check` asks;
`derive_facts` (derive) fills in what follows from what is known; `differences` (explain) says why two dates differ.
"""
