-- The prices of one release; ${release} comes from the draft. Rows that the shop adds have own = 1.
CREATE TABLE price (
    item TEXT PRIMARY KEY,
    cents INTEGER NOT NULL,
    own INTEGER NOT NULL DEFAULT 0
);
.mode csv
CREATE TEMP TABLE shipped (item TEXT, cents INTEGER);
.import --skip 1 prices-${release}.csv shipped
INSERT INTO price (item, cents) SELECT item, cents FROM shipped;
DROP TABLE shipped;
