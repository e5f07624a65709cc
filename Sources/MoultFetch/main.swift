internal import Glibc

// What moult starts to ask a web server: one request on stdin, the answer on stdout, how it ended on stderr.
//
// It is a program of its own, because loading libcurl costs more time than an update without work does, and because what
// strangers send is better taken apart by a process that has nothing to do with the store.
exit(Fetch.run())
