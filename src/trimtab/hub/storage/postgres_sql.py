"""What is said to PostgreSQL. Each list of names or keys is one statement, whose plan does not depend on statistics."""

from __future__ import annotations

# A subquery with a limit is run for each key, by the index: no plan reads the whole table.
_OF_KEY = (
    "SELECT r.{columns} FROM hub_resources r WHERE r.organization = k.organization AND r.type = k.type "
    "AND r.project_name = (SELECT i.name FROM hub_identities i WHERE i.id = k.project) "
    "AND r.name = k.name AND r.project = k.project LIMIT 1"
)
_KEYS = "unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k(organization, type, project, name)"

GET = (
    "SELECT data FROM hub_resources WHERE organization = $1 AND type = $2 "
    "AND project_name = (SELECT name FROM hub_identities WHERE id = $3) AND name = $4 AND project = $3"
)
GET_ALL = f"SELECT r.data FROM {_KEYS} CROSS JOIN LATERAL ({_OF_KEY.format(columns='data')}) r"  # noqa: S608

COUNTER = "SELECT revision, compacted FROM hub_counter"
LOCK = (
    "SELECT revision, compacted, extract(epoch FROM clock_timestamp())::double precision AS now "
    "FROM hub_counter FOR UPDATE"
)
# A reader has no lock of this mode, and one that waits for the row waits for no client.
END_STALLED = (
    "SELECT a.pid, pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
    "WHERE l.relation = 'hub_counter'::regclass AND a.datname = current_database() AND l.mode = 'RowShareLock' "
    "AND l.granted AND a.usename = current_user AND a.wait_event_type = 'Client' "
    "AND a.state_change < clock_timestamp() - make_interval(secs => $1)"
)
LOGGED_AT = "SELECT at FROM hub_log WHERE revision = $1"
ADVANCE = "WITH moved AS (UPDATE hub_counter SET revision = $1) SELECT pg_notify($2, $3)"

PLACES = (
    "SELECT 'o' AS what, name AS id, '' AS organization, '' AS name, NULL AS data FROM hub_organizations "
    "WHERE name = ANY($1) "
    "UNION ALL SELECT 'p', i.id, i.organization, i.name, r.data FROM hub_identities i CROSS JOIN LATERAL "
    "(SELECT data FROM hub_resources r WHERE r.organization = i.organization AND r.type = i.type AND r.project_name = '' "
    "AND r.name = i.name LIMIT 1) r WHERE i.id = ANY($2) AND i.type = $3 AND NOT i.deleted "
    "UNION ALL SELECT 'v', version::text, '', '', NULL FROM hub_version"
)
GUESTS = (
    "SELECT r.data FROM hub_sharing s JOIN hub_resources r ON r.organization = s.organization AND r.type = s.type "
    "AND r.name = s.name AND r.id = s.resource WHERE s.organization = ANY($1) AND s.project = ANY($2)"
)
PUBLISHED = (
    "SELECT s.resource, s.version, s.data FROM unnest($1::text[], $2::text[]) AS k(resource, version) "
    "JOIN hub_snapshots s ON s.resource = k.resource AND s.version = k.version"
)
USED = (
    "SELECT k.id, (SELECT count(*) FROM (SELECT 1 FROM hub_identities i WHERE i.project = k.id AND NOT i.deleted "
    "LIMIT $2) AS few) AS count FROM unnest($1::text[]) AS k(id)"
)

LOG = (
    "SELECT c.revision AS newest, c.compacted, l.revision, l.before, l.after FROM hub_counter c LEFT JOIN LATERAL "
    "(SELECT revision, before, after FROM hub_log WHERE revision > $1 ORDER BY revision LIMIT $2) l ON true "
    "ORDER BY l.revision"
)
OLDEST = "SELECT revision, at FROM hub_log WHERE revision > $1 ORDER BY revision LIMIT $2"
FORGET = "WITH moved AS (UPDATE hub_counter SET compacted = $1 WHERE compacted < $1) DELETE FROM hub_log WHERE revision <= $1"

IDS = f"SELECT r.name, r.id FROM {_KEYS} CROSS JOIN LATERAL ({_OF_KEY.format(columns='name, r.id')}) r"  # noqa: S608
IDS_ANYWHERE = (
    "SELECT k.name, r.id FROM unnest($3::text[]) AS k(name) CROSS JOIN LATERAL (SELECT id FROM hub_resources r "
    "WHERE r.organization = $1 AND r.type = $2 AND r.name = k.name ORDER BY project_name LIMIT 1) r"
)
# What is shared with the project itself before what is shared with all; of several always the same one.
IDS_SHARED = (
    "SELECT k.name, s.resource AS id FROM unnest($3::text[]) AS k(name) CROSS JOIN LATERAL "
    "(SELECT resource FROM hub_sharing s WHERE s.organization = $1 AND s.type = $2 AND s.name = k.name "
    "AND s.project = ANY($4) ORDER BY s.project = $5, s.resource LIMIT 1) s"
)
NAMES = "SELECT id, type, project, name, deleted FROM hub_identities WHERE id = ANY($1) AND id <> ''"
VERSIONS = (
    "SELECT s.data FROM hub_snapshots s WHERE s.resource = (SELECT id FROM hub_resources WHERE organization = $1 "
    "AND type = $2 AND project_name = (SELECT name FROM hub_identities WHERE id = $3) AND name = $4 AND project = $3) "
    "ORDER BY s.number"
)


def page(rows: str) -> str:
    """A list, and the counter of the same moment."""
    return (
        f"SELECT c.revision, c.compacted, r.project_name, r.name, r.data FROM hub_counter c "  # noqa: S608
        f"LEFT JOIN LATERAL ({rows}) r ON true ORDER BY r.project_name, r.name"
    )
