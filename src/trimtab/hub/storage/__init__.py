"""The storage service: organisations, projects, rows with IDs, sharing, snapshots and blobs, in SQLite or PostgreSQL."""
