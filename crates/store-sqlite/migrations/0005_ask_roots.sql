-- Asks of descendants surface at the root of their session (tool-contract 13.6).
ALTER TABLE asks ADD COLUMN root_session BLOB;
ALTER TABLE asks ADD COLUMN root_tool_use_id BLOB;
