internal import MoultLibc

// moult starts this program to ask a web server: one request on stdin, the answer on stdout, the outcome on stderr.
//
// It is a separate program, because loading libcurl costs more time than an update without work does, and because a process
// without access to the store should parse untrusted data.
exit(Fetch.run())
