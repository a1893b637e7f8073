"""Reports: computed as plain dicts, drawn and filled into templates apart."""
