-- MBTiles 1.3 as written by tippecanoe: tiles without duplicates behind a view, and UTFGrid data
-- @preserve map images metadata
PRAGMA application_id = 0x4d504258;
CREATE TABLE map (zoom_level INTEGER, tile_column INTEGER, tile_row INTEGER, tile_id TEXT, grid_id TEXT);
CREATE UNIQUE INDEX map_index ON map (zoom_level, tile_column, tile_row);
CREATE TABLE images (tile_data BLOB, tile_id TEXT);
CREATE UNIQUE INDEX images_id ON images (tile_id);
CREATE TABLE grid_key (grid_id TEXT, key_name TEXT);
CREATE UNIQUE INDEX grid_key_lookup ON grid_key (grid_id, key_name);
CREATE TABLE keymap (key_name TEXT, key_json TEXT);
CREATE UNIQUE INDEX keymap_lookup ON keymap (key_name);
CREATE TABLE grid_utfgrid (grid_id TEXT, grid_utfgrid TEXT);
CREATE UNIQUE INDEX grid_utfgrid_lookup ON grid_utfgrid (grid_id);
CREATE TABLE metadata (name TEXT, value TEXT);
CREATE UNIQUE INDEX name ON metadata (name);
CREATE VIEW tiles AS
  SELECT map.zoom_level AS zoom_level, map.tile_column AS tile_column, map.tile_row AS tile_row, images.tile_data AS tile_data
  FROM map JOIN images ON images.tile_id = map.tile_id;
CREATE VIEW grids AS
  SELECT map.zoom_level AS zoom_level, map.tile_column AS tile_column, map.tile_row AS tile_row, grid_utfgrid.grid_utfgrid AS grid
  FROM map JOIN grid_utfgrid ON grid_utfgrid.grid_id = map.grid_id;
CREATE VIEW grid_data AS
  SELECT map.zoom_level AS zoom_level, map.tile_column AS tile_column, map.tile_row AS tile_row, keymap.key_name AS key_name, keymap.key_json AS key_json
  FROM map JOIN grid_key ON map.grid_id = grid_key.grid_id JOIN keymap ON grid_key.key_name = keymap.key_name;
