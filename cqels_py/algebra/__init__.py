"""The logical plan: frozen typed nodes, a printer, a validator."""
