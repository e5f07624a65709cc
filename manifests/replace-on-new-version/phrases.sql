-- The phrases of one release; ${release} comes from the draft.
CREATE TABLE phrase (danish TEXT PRIMARY KEY, english TEXT NOT NULL, topic TEXT NOT NULL) WITHOUT ROWID;
.mode csv
.import --skip 1 phrases-${release}.csv phrase
CREATE INDEX phrase_topic ON phrase (topic);
