"""One file a schema version, oldest first by number."""
