-- The user's own notes: an empty template.
CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
