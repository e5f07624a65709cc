-- GeoPackage 1.3 with an R-tree, as GDAL 3.6 writes it: a layer of points
-- @function ST_IsEmpty 1
-- @function ST_MinX 1
-- @function ST_MaxX 1
-- @function ST_MinY 1
-- @function ST_MaxY 1
-- @skip gpkg_ogr_contents
-- @skip gpkg_extensions
-- @skip gpkg_tile_matrix_set
-- @skip gpkg_tile_matrix
-- @rows gpkg_contents 1
-- @rows gpkg_geometry_columns 1
-- @rows gpkg_spatial_ref_sys 3
-- @fill gpkg_contents.table_name 'places'
-- @fill gpkg_contents.data_type 'features'
-- @fill gpkg_geometry_columns.table_name 'places'
-- @fill gpkg_geometry_columns.column_name 'geom'
-- @fill gpkg_geometry_columns.z 0
-- @fill gpkg_geometry_columns.m 0
-- @fill gpkg_spatial_ref_sys.organization_coordsys_id :n
-- @fill places.geom CAST(:n * 37 % 180 AS TEXT)
-- @rows places 500
-- @rows attributes 600
-- @preserve attributes
-- @migrate attributes
PRAGMA application_id = 0x47504b47;
PRAGMA user_version = 10300;
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER NOT NULL PRIMARY KEY, organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL,
  description TEXT);
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,
  CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_ogr_contents (table_name TEXT NOT NULL PRIMARY KEY, feature_count INTEGER DEFAULT NULL);
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name), CONSTRAINT uk_gc_table_name UNIQUE (table_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents (table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_tile_matrix_set (
  table_name TEXT NOT NULL PRIMARY KEY, srs_id INTEGER NOT NULL, min_x DOUBLE NOT NULL, min_y DOUBLE NOT NULL, max_x DOUBLE NOT NULL, max_y DOUBLE NOT NULL,
  CONSTRAINT fk_gtms_table_name FOREIGN KEY (table_name) REFERENCES gpkg_contents (table_name),
  CONSTRAINT fk_gtms_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_tile_matrix (
  table_name TEXT NOT NULL, zoom_level INTEGER NOT NULL, matrix_width INTEGER NOT NULL, matrix_height INTEGER NOT NULL, tile_width INTEGER NOT NULL,
  tile_height INTEGER NOT NULL, pixel_x_size DOUBLE NOT NULL, pixel_y_size DOUBLE NOT NULL, CONSTRAINT pk_ttm PRIMARY KEY (table_name, zoom_level),
  CONSTRAINT fk_tmm_table_name FOREIGN KEY (table_name) REFERENCES gpkg_contents (table_name));
CREATE TABLE gpkg_extensions (
  table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL, definition TEXT NOT NULL, scope TEXT NOT NULL, CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));
CREATE TABLE places (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom POINT, name TEXT, population MEDIUMINT, height REAL, founded DATE, photo BLOB);
CREATE TABLE attributes (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, place INTEGER, word TEXT, more JSON);
CREATE VIRTUAL TABLE rtree_places_geom USING rtree(id, minx, maxx, miny, maxy);
INSERT INTO gpkg_ogr_contents VALUES ('places', 0);
INSERT INTO gpkg_extensions VALUES
  ('places', 'geom', 'gpkg_rtree_index', 'http://www.geopackage.org/spec120/#extension_rtree', 'write-only');
CREATE TRIGGER trigger_insert_feature_count_places AFTER INSERT ON places BEGIN
  UPDATE gpkg_ogr_contents SET feature_count = feature_count + 1 WHERE lower(table_name) = lower('places');
END;
CREATE TRIGGER trigger_delete_feature_count_places AFTER DELETE ON places BEGIN
  UPDATE gpkg_ogr_contents SET feature_count = feature_count - 1 WHERE lower(table_name) = lower('places');
END;
CREATE TRIGGER rtree_places_geom_insert AFTER INSERT ON places WHEN (new.geom NOT NULL AND NOT coalesce(ST_IsEmpty(new.geom) = 'none', 0)) BEGIN
  INSERT OR REPLACE INTO rtree_places_geom VALUES (new.fid, ST_MinX(new.geom), ST_MaxX(new.geom), ST_MinY(new.geom), ST_MaxY(new.geom));
END;
CREATE TRIGGER rtree_places_geom_update1 AFTER UPDATE OF geom ON places
  WHEN old.fid = new.fid AND (new.geom NOT NULL AND NOT ST_IsEmpty(new.geom)) BEGIN
  INSERT OR REPLACE INTO rtree_places_geom VALUES (new.fid, ST_MinX(new.geom), ST_MaxX(new.geom), ST_MinY(new.geom), ST_MaxY(new.geom));
END;
CREATE TRIGGER rtree_places_geom_update2 AFTER UPDATE OF geom ON places
  WHEN old.fid = new.fid AND (new.geom IS NULL OR ST_IsEmpty(new.geom)) BEGIN
  DELETE FROM rtree_places_geom WHERE id = old.fid;
END;
CREATE TRIGGER rtree_places_geom_update3 AFTER UPDATE ON places
  WHEN old.fid != new.fid AND (new.geom NOT NULL AND NOT ST_IsEmpty(new.geom)) BEGIN
  DELETE FROM rtree_places_geom WHERE id = old.fid;
  INSERT OR REPLACE INTO rtree_places_geom VALUES (new.fid, ST_MinX(new.geom), ST_MaxX(new.geom), ST_MinY(new.geom), ST_MaxY(new.geom));
END;
CREATE TRIGGER rtree_places_geom_update4 AFTER UPDATE ON places
  WHEN old.fid != new.fid AND (new.geom IS NULL OR ST_IsEmpty(new.geom)) BEGIN
  DELETE FROM rtree_places_geom WHERE id IN (old.fid, new.fid);
END;
CREATE TRIGGER rtree_places_geom_delete AFTER DELETE ON places WHEN old.geom NOT NULL BEGIN
  DELETE FROM rtree_places_geom WHERE id = old.fid;
END;
