-- a comment
.mode csv
.import "food list.csv" food
.separator '|' "\n"
# another
CREATE TABLE food(id INTEGER PRIMARY KEY, name TEXT CHECK(name <> ';'));
INSERT INTO food VALUES(1, 'it''s; rye'), (2, "oats"); /* ; */ SELECT [a;b], `c;d` FROM food
go
CREATE TRIGGER t AFTER INSERT ON food BEGIN SELECT 1; END;
/
SELECT 'the end'
