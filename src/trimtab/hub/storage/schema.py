"""The tables, in both databases' words, and how they came to be: step n takes a database of version n to n + 1.

Rows lie in the order in which they are listed: by organisation, type, the project's *name* and the own name, in the order of
bytes. A project's name does not change, so it is kept in each row. `hub_log.previous` is the revision that a change
superseded (0: the row was not there): the state at revision r is what has changed by r, and the `before` of each change with
previous <= r < revision, of which there is one for each row that has changed since.

Whether a project has rows is asked of the identities: an index of rows by project alone would tempt planners to use it where
a name is asked for.

To change the shape, add a step; never edit one that was released.
"""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True):
    """`both` is for every database, with the words of its dialect; `sqlite` is what only SQLite has besides."""

    both: str
    sqlite: str = ""


LADDER: tuple[Step, ...] = (
    Step(
        # The identity without an ID: what has no project is in the project without a name.
        both="""
        CREATE TABLE hub_counter (one INTEGER PRIMARY KEY, revision BIGINT NOT NULL, compacted BIGINT NOT NULL);
        INSERT INTO hub_counter VALUES (1, 0, 0);
        CREATE TABLE hub_organizations (name {text} PRIMARY KEY);
        INSERT INTO hub_organizations VALUES ('default');
        CREATE TABLE hub_resources (
          organization {text} NOT NULL,
          type {text} NOT NULL,
          project_name {text} NOT NULL,
          name {text} NOT NULL,
          project {text} NOT NULL,
          id {text} NOT NULL,
          revision BIGINT NOT NULL,
          labels {json} NOT NULL,
          data {bytes} NOT NULL,
          PRIMARY KEY (organization, type, project_name, name)
        ){packing};
        CREATE INDEX hub_resources_by_name ON hub_resources (organization, type, name, project_name);
        CREATE TABLE hub_labels (
          organization {text} NOT NULL,
          type {text} NOT NULL,
          label {text} NOT NULL,
          value {text} NOT NULL,
          project_name {text} NOT NULL,
          name {text} NOT NULL,
          PRIMARY KEY (organization, type, label, value, project_name, name)
        );
        CREATE TABLE hub_identities (
          id {text} PRIMARY KEY,
          organization {text} NOT NULL,
          type {text} NOT NULL,
          project {text} NOT NULL,
          name {text} NOT NULL,
          deleted BOOLEAN NOT NULL
        );
        CREATE INDEX hub_identities_by_project ON hub_identities (project) WHERE NOT deleted;
        INSERT INTO hub_identities VALUES ('', '', '', '', '', false);
        CREATE TABLE hub_sharing (
          organization {text} NOT NULL,
          type {text} NOT NULL,
          name {text} NOT NULL,
          project {text} NOT NULL,
          resource {text} NOT NULL,
          PRIMARY KEY (organization, type, name, project, resource)
        );
        CREATE TABLE hub_snapshots (
          resource {text} NOT NULL,
          version {text} NOT NULL,
          number BIGINT NOT NULL,
          data {bytes} NOT NULL,
          PRIMARY KEY (resource, version)
        );
        CREATE TABLE hub_log (
          revision {integer} PRIMARY KEY,
          organization {text} NOT NULL,
          type {text} NOT NULL,
          project_name {text} NOT NULL,
          name {text} NOT NULL,
          project {text} NOT NULL,
          previous BIGINT NOT NULL,
          at {real} NOT NULL,
          labels {json} NOT NULL,
          before {bytes},
          after {bytes}
        );
        CREATE INDEX hub_log_by_name ON hub_log (organization, type, project_name, name, previous, revision);
        """,
        # In PostgreSQL the tables of blobs are those of `trimtab.storage`.
        sqlite="""
        CREATE TABLE hub_blobs (
          digest TEXT PRIMARY KEY,
          upload TEXT NOT NULL UNIQUE,
          size INTEGER NOT NULL,
          media_type TEXT NOT NULL,
          touched REAL NOT NULL
        );
        CREATE INDEX hub_blobs_by_age ON hub_blobs (touched);
        CREATE TABLE hub_blob_chunks (
          upload TEXT NOT NULL,
          number INTEGER NOT NULL,
          data BLOB NOT NULL,
          PRIMARY KEY (upload, number)
        );
        CREATE TABLE hub_blob_pins (owner TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (owner, digest));
        CREATE INDEX hub_blob_pins_by_digest ON hub_blob_pins (digest);
        """,
    ),
    # With a project goes what is shared with it.
    Step(both="CREATE INDEX hub_sharing_by_project ON hub_sharing (project, organization);"),
)

_SQLITE = {"text": "TEXT", "json": "TEXT", "bytes": "BLOB", "real": "REAL", "integer": "INTEGER", "packing": ""}
_POSTGRES = {
    "text": 'text COLLATE "C"',  # in the order of bytes, whatever the database's language is
    "json": "jsonb",
    "bytes": "bytea",
    "real": "double precision",
    "integer": "bigint",
    "packing": " WITH (fillfactor = 90)",  # an update finds room in the row's own page, and touches no index
}


def sqlite_steps(version: int) -> list[str]:
    """What is still to do on a file of this version."""
    return [step.both.format_map(_SQLITE) + step.sqlite for step in LADDER[version:]]


def postgres_steps(version: int) -> list[str]:
    return [step.both.format_map(_POSTGRES) for step in LADDER[version:]]
