CREATE TABLE food (pk INTEGER PRIMARY KEY NOT NULL, name TEXT);
.mode csv
.separator |
.import food.csv food
