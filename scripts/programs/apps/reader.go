// Reads a store of moult: takes a lease, opens the files of one release, and opens them again after each update.
package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Keeps the installed release in place until the file is closed.
func lease(store string) (*os.File, string) {
	for {
		name := filepath.Base(must(os.Readlink(store + "/.moult/current")))
		file := must(os.OpenFile(store+"/.moult/leases/"+name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0))
		const setLockOfFile = 37 // F_OFD_SETLK: closing another descriptor does not end it
		if err := syscall.FcntlFlock(file.Fd(), setLockOfFile, &syscall.Flock_t{Type: syscall.F_RDLCK}); err != nil {
			panic(err)
		}
		if filepath.Base(must(os.Readlink(store+"/.moult/current"))) == name {
			return file, store + "/.moult/generations/" + name
		}
		file.Close()
	}
}

func main() {
	store, directory := os.Args[1], os.Args[2]
	prices := must(sql.Open("sqlite3", "file:"+(&url.URL{Path: store}).EscapedPath()+"/prices.db?_busy_timeout=60000"))
	for os.IsNotExist(func() error { _, err := os.Stat(directory + "/stop"); return err }()) {
		held, release := lease(store)
		seen := must(os.ReadFile(store + "/.moult/announced"))
		food := must(sql.Open("sqlite3", "file:"+(&url.URL{Path: release}).EscapedPath()+"/food.db?mode=ro&immutable=1"))
		var one, other string
		if err := food.QueryRow("SELECT group_concat(DISTINCT release) FROM food").Scan(&one); err != nil {
			panic(err)
		}
		if err := prices.QueryRow("SELECT group_concat(DISTINCT cents) FROM price WHERE own = 0").Scan(&other); err != nil {
			panic(err)
		}
		os.WriteFile(directory+"/go.new", []byte(fmt.Sprintf("%s %s", one, other)), 0o644)
		os.Rename(directory+"/go.new", directory+"/go.view")
		for bytes.Equal(must(os.ReadFile(store+"/.moult/announced")), seen) {
			if _, err := os.Stat(directory + "/stop"); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		food.Close()
		held.Close()
	}
}
