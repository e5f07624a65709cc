// Runs SQL on all databases of a moult store, in Rust without crates:
//
//     rustc --edition 2021 reader.rs -L DIRECTORY -l moult-reader -l sqlite3
//
// usage: reader STORE SQL
use std::ffi::{c_char, c_int, c_void, CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

// The declarations of moult_reader.h.

#[repr(C)]
struct MoultError {
    code: c_int,
    what: [c_char; 1024],
    why: [c_char; 1024],
    next: [c_char; 1024],
}

/// Later versions may append fields, so use it only through a pointer from the library.
#[repr(C)]
struct MoultDatabase {
    name: *const c_char,
    schema: *const c_char,
    kind: *const c_char,
    path: *const c_char,
    uri: *const c_char,
    writable: c_int,
    group: *const c_char,
}

extern "C" {
    fn moult_open(store: *const c_char, error: *mut MoultError) -> *mut c_void;
    fn moult_close(lease: *mut c_void);
    fn moult_database_at(lease: *const c_void, index: usize) -> *const MoultDatabase;
    fn moult_switched(lease: *const c_void, error: *mut MoultError) -> c_int;
}

// The system's SQLite, which a wrapper such as rusqlite can use as well.
extern "C" {
    fn sqlite3_open_v2(name: *const c_char, db: *mut *mut c_void, flags: c_int, vfs: *const c_char) -> c_int;
    fn sqlite3_close(db: *mut c_void) -> c_int;
    fn sqlite3_busy_timeout(db: *mut c_void, milliseconds: c_int) -> c_int;
    fn sqlite3_errmsg(db: *mut c_void) -> *const c_char;
    fn sqlite3_exec(db: *mut c_void, sql: *const c_char, each: Option<Row>, state: *mut c_void, error: *mut *mut c_char) -> c_int;
}
type Row = extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
const READWRITE_URI: c_int = 0x02 | 0x40;

unsafe fn text(pointer: *const c_char) -> String {
    CStr::from_ptr(pointer).to_string_lossy().into_owned()
}

/// A lease on one release. It ends when this value is dropped, so `Connection` borrows it.
struct Lease(*mut c_void);

impl Lease {
    fn take(store: &OsStr) -> Result<Lease, String> {
        let store = CString::new(store.as_bytes()).map_err(|_| "a NUL in the path".to_string())?;
        let mut error = MoultError { code: 0, what: [0; 1024], why: [0; 1024], next: [0; 1024] };
        let lease = unsafe { moult_open(store.as_ptr(), &mut error) };
        if !lease.is_null() {
            return Ok(Lease(lease));
        }
        unsafe { Err(format!("{}: {}\n{}", text(error.what.as_ptr()), text(error.why.as_ptr()), text(error.next.as_ptr()))) }
    }

    /// Returns the schema and the URI of each database without a group; each group would need a separate
    /// connection.
    fn attachments(&self) -> Vec<(String, CString)> {
        let mut found = Vec::new();
        for index in 0.. {
            unsafe {
                let database = moult_database_at(self.0, index);
                if database.is_null() {
                    break;
                }
                if (*database).group.is_null() {
                    found.push((text((*database).schema), CStr::from_ptr((*database).uri).to_owned()));
                }
            }
        }
        found
    }

    /// Returns whether another release has been installed in the meantime.
    fn is_outdated(&self) -> bool {
        unsafe { moult_switched(self.0, null_mut()) != 0 }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        unsafe { moult_close(self.0) }
    }
}

struct Connection<'a> {
    db: *mut c_void,
    _lease: &'a Lease,
}

impl<'a> Connection<'a> {
    /// Opens the user database as main, and attaches the other databases under their names.
    fn open(lease: &'a Lease) -> Result<Connection<'a>, String> {
        let databases = lease.attachments();
        let memory = CString::new(":memory:").map_err(|error| error.to_string())?;
        let main = databases.iter().find(|(schema, _)| schema == "main").map_or(&memory, |(_, uri)| uri);
        let mut connection = Connection { db: null_mut(), _lease: lease };
        // SQLITE_OPEN_URI also applies to each ATTACH on this connection.
        let status = unsafe { sqlite3_open_v2(main.as_ptr(), &mut connection.db, READWRITE_URI, null()) };
        connection.check(status)?;
        connection.check(unsafe { sqlite3_busy_timeout(connection.db, 10_000) })?;
        for (schema, uri) in databases.iter().filter(|(schema, _)| schema != "main") {
            let uri = uri.to_str().map_err(|error| error.to_string())?.replace('\'', "''");
            connection.run(&format!("ATTACH '{uri}' AS \"{}\"", schema.replace('"', "\"\"")))?;
        }
        Ok(connection)
    }

    /// Runs statements and prints their rows.
    fn run(&self, sql: &str) -> Result<(), String> {
        extern "C" fn print(_: *mut c_void, count: c_int, values: *mut *mut c_char, _: *mut *mut c_char) -> c_int {
            let values = unsafe { std::slice::from_raw_parts(values, count as usize) };
            let words: Vec<String> =
                values.iter().map(|&value| if value.is_null() { "NULL".into() } else { unsafe { text(value) } }).collect();
            println!("{}", words.join("|"));
            0
        }
        let sql = CString::new(sql).map_err(|_| "a NUL in the SQL".to_string())?;
        self.check(unsafe { sqlite3_exec(self.db, sql.as_ptr(), Some(print), null_mut(), null_mut()) })
    }

    fn check(&self, status: c_int) -> Result<(), String> {
        if status == 0 { Ok(()) } else { Err(unsafe { text(sqlite3_errmsg(self.db)) }) }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        unsafe { sqlite3_close(self.db) };
    }
}

fn run(store: &OsStr, sql: &str) -> Result<(), String> {
    let lease = Lease::take(store)?;
    Connection::open(&lease)?.run(sql)?;
    if lease.is_outdated() {
        eprintln!("another release has been installed meanwhile");
    }
    Ok(())
}

fn main() {
    let words: Vec<_> = std::env::args_os().collect();
    if words.len() != 3 {
        eprintln!("usage: reader STORE SQL");
        std::process::exit(64);
    }
    if let Err(error) = run(&words[1], &words[2].to_string_lossy()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
