"""Schema versions of the store, applied by ``records.database`` when a store is opened."""
