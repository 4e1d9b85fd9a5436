"""The queries of the scenarios, one per file: `<scenario>/<name>.rq`, each with a header that describes it."""
