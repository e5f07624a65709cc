-- Pieces of maps as they were fetched: all of it can be fetched again.
CREATE TABLE piece (x INTEGER, y INTEGER, image BLOB, PRIMARY KEY (x, y)) WITHOUT ROWID;
