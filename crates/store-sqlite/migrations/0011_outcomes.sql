-- What a session is to reach: the title of its outcome, how it stands to it, and how that compares with the verdict before.
-- No log from before this says anything of it.
ALTER TABLE session_facts ADD COLUMN outcome_title TEXT;
ALTER TABLE session_facts ADD COLUMN outcome TEXT;
ALTER TABLE session_facts ADD COLUMN outcome_trend TEXT;
CREATE INDEX facts_outcome ON session_facts (tenant, outcome, created_at, session) WHERE outcome IS NOT NULL;
