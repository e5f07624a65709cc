-- The user's diary: an empty template.
CREATE TABLE entry (id INTEGER PRIMARY KEY, day TEXT NOT NULL, text TEXT NOT NULL);
