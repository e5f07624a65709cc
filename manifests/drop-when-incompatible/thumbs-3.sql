-- Images have a width now.
CREATE TABLE thumb (id INTEGER PRIMARY KEY, image BLOB, width INTEGER);
