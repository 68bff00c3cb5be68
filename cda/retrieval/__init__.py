"""From a question to whole clauses: embedders, lexical and code legs, fusion, search, hydration from the store."""
