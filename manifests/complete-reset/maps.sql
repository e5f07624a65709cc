-- Downloaded map tiles, which the app can download again.
CREATE TABLE piece (x INTEGER, y INTEGER, image BLOB, PRIMARY KEY (x, y)) WITHOUT ROWID;
