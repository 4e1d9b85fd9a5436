"""The scenarios' queries, one a file: `<scenario>/<name>.rq`, each with a header that says what it asks."""
