"""Create the tables: jobs, artifacts, timeline, quarantine, counters, alerts, heartbeats, hosts, storage."""

from alembic import op

revision = "0001"
down_revision = None

# The length of a job_id is a condition of its own: `{0,127}` inside the pattern costs 11 µs instead of 0.3 at every
# insert and update, a third of what the statement takes for a new claim and half of it for a duplicate.
JOBS = """
CREATE TABLE sume_jobs (
    job_id text COLLATE "C" PRIMARY KEY
        CONSTRAINT sume_jobs_job_id CHECK (job_id ~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$' AND octet_length(job_id) <= 128),
    state text NOT NULL DEFAULT 'claimed'
        CONSTRAINT sume_jobs_state CHECK (state IN ('expected', 'claimed', 'running', 'done', 'dead')),
    event text CONSTRAINT sume_jobs_event CHECK (event IN ('job.completed', 'job.failed', 'job.canceled')),
    status text CONSTRAINT sume_jobs_status CHECK (status IN ('OK', 'ERROR')),
    deliveries integer NOT NULL DEFAULT 1,
    attempts integer NOT NULL DEFAULT 0,
    strikes integer NOT NULL DEFAULT 0,
    polls integer NOT NULL DEFAULT 0,
    source text DEFAULT 'webhook' CONSTRAINT sume_jobs_source CHECK (source IN ('webhook', 'poll')),
    registered_at timestamptz,
    first_seen timestamptz DEFAULT now(),
    last_seen timestamptz DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    open_since timestamptz NOT NULL DEFAULT now(),
    wake_at timestamptz DEFAULT now(),
    not_before timestamptz,
    acknowledged_at timestamptz,
    pruned_at timestamptz,
    claim_id uuid,
    lease_token uuid,
    lease_owner text,
    status_url text,
    payload text,
    event_error text,
    error text,
    reason text,
    conflict_with text,
    waits_for_host text,
    attention smallint NOT NULL GENERATED ALWAYS AS (
        CASE WHEN status = 'ERROR' AND acknowledged_at IS NULL THEN 2 WHEN state = 'dead' THEN 1 ELSE 0 END
    ) STORED,
    CONSTRAINT sume_jobs_lease CHECK ((state = 'running') = (lease_token IS NOT NULL)),
    CONSTRAINT sume_jobs_expected CHECK (
        CASE WHEN event IS NULL THEN state IN ('expected', 'dead') ELSE state <> 'expected' END
    ),
    CONSTRAINT sume_jobs_whole_event CHECK (
        (event IS NULL) = (status IS NULL) AND (event IS NULL) = (first_seen IS NULL)
        AND (event IS NULL) = (source IS NULL)
        AND (event IS NULL) = (payload IS NULL AND pruned_at IS NULL)
    ),
    CONSTRAINT sume_jobs_wake CHECK ((state IN ('done', 'dead')) = (wake_at IS NULL)),
    CONSTRAINT sume_jobs_reason CHECK (state <> 'dead' OR reason IS NOT NULL),
    CONSTRAINT sume_jobs_waits CHECK (state = 'claimed' OR waits_for_host IS NULL)
) WITH (fillfactor = 85)
"""

# Neither deliveries nor last_seen is in any index, nor in a condition of one, so that counting a duplicate stays a HOT
# update. A claim writes into three of these, however many there are.
INDEXES = (
    # What is open, in the order in which it is due: each sweep and poll reads what it takes and no more.
    "CREATE INDEX sume_jobs_claimed ON sume_jobs (status, wake_at) WHERE state = 'claimed'",
    "CREATE INDEX sume_jobs_running ON sume_jobs (wake_at) WHERE state = 'running'",
    "CREATE INDEX sume_jobs_expected ON sume_jobs (wake_at) WHERE state = 'expected'",
    # `list`: what needs a person first, then the latest change.
    "CREATE INDEX sume_jobs_attention ON sume_jobs (attention, updated_at, job_id)",
    """CREATE INDEX sume_jobs_prunable ON sume_jobs (updated_at)
    WHERE state = 'done' AND pruned_at IS NULL AND (status = 'OK' OR acknowledged_at IS NOT NULL)""",
    "CREATE INDEX sume_jobs_waits ON sume_jobs (waits_for_host) WHERE waits_for_host IS NOT NULL",
)

# A plain upsert from another receiver only counts the delivery: on a row without an event it makes polling due.
DELIVERED_ELSEWHERE = """
CREATE FUNCTION sume_jobs_delivered_elsewhere() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = 'dead' THEN
        NEW.state := 'expected';
        NEW.reason := NULL;
        NEW.error := NULL;
        NEW.polls := 0;
        NEW.open_since := now();
        NEW.updated_at := now();
    END IF;
    NEW.wake_at := now();
    RETURN NEW;
END $$
"""
DELIVERED_ELSEWHERE_TRIGGER = """
CREATE TRIGGER sume_jobs_delivered_elsewhere BEFORE UPDATE ON sume_jobs FOR EACH ROW
WHEN (NEW.event IS NULL AND NEW.deliveries > OLD.deliveries)
EXECUTE FUNCTION sume_jobs_delivered_elsewhere()
"""

ARTIFACTS = """
CREATE TABLE sume_artifacts (
    job_id text COLLATE "C" NOT NULL REFERENCES sume_jobs ON DELETE CASCADE,
    index integer NOT NULL,
    path text NOT NULL,
    bytes bigint NOT NULL,
    sha256 text NOT NULL,
    content_type text,
    type text,
    published_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id, index)
)
"""
TIMELINE = """
CREATE TABLE sume_timeline (
    id bigint GENERATED ALWAYS AS IDENTITY,
    job_id text COLLATE "C" NOT NULL REFERENCES sume_jobs ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL,
    cause text NOT NULL,
    attempt integer NOT NULL,
    detail text,
    PRIMARY KEY (job_id, id)
)
"""
QUARANTINE = """
CREATE TABLE sume_quarantine (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reason text NOT NULL,
    body bytea NOT NULL,
    body_sha256 bytea NOT NULL UNIQUE,
    count bigint NOT NULL DEFAULT 1,
    first_seen timestamptz NOT NULL DEFAULT now(),
    last_seen timestamptz NOT NULL DEFAULT now(),
    replayed_at timestamptz,
    told_at timestamptz
)
"""
QUARANTINE_INDEXES = (
    "CREATE INDEX sume_quarantine_open ON sume_quarantine (id) WHERE replayed_at IS NULL",
    "CREATE INDEX sume_quarantine_replayed ON sume_quarantine (last_seen, id) WHERE replayed_at IS NOT NULL",
)
COUNTERS = """
CREATE TABLE sume_counters (
    name text PRIMARY KEY,
    count bigint NOT NULL,
    last_at timestamptz NOT NULL DEFAULT now(),
    detail text
)
"""
ALERTS = """
CREATE TABLE sume_alerts (
    kind text NOT NULL,
    subject text NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT now(),
    held_back bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, subject)
)
"""
HEARTBEATS = """
CREATE TABLE sume_heartbeats (
    role text NOT NULL,
    name text NOT NULL,
    last_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (role, name)
)
"""
# Artifact hosts that failed since they last worked; the circuit of one is open while it has an open_since.
HOSTS = """
CREATE TABLE sume_hosts (
    host text COLLATE "C" PRIMARY KEY,
    failures bigint NOT NULL DEFAULT 1,
    failed_jobs text[] NOT NULL,
    last_failure_at timestamptz NOT NULL DEFAULT now(),
    open_since timestamptz,
    next_probe_at timestamptz,
    probes integer NOT NULL DEFAULT 0,
    prober text,
    probe_token uuid,
    CONSTRAINT sume_hosts_open CHECK ((open_since IS NULL) = (next_probe_at IS NULL))
)
"""
# The id of the storage that holds the files.
STORAGE = """
CREATE TABLE sume_storage (
    the_only boolean PRIMARY KEY DEFAULT true CONSTRAINT sume_storage_one CHECK (the_only),
    id text NOT NULL,
    known_since timestamptz NOT NULL DEFAULT now()
)
"""


def upgrade() -> None:
    """Create everything of the first release."""
    for statement in (
        JOBS,
        *INDEXES,
        DELIVERED_ELSEWHERE,
        DELIVERED_ELSEWHERE_TRIGGER,
        ARTIFACTS,
        TIMELINE,
        QUARANTINE,
        *QUARANTINE_INDEXES,
        COUNTERS,
        ALERTS,
        HOSTS,
        STORAGE,
        HEARTBEATS,
    ):
        op.execute(statement)
