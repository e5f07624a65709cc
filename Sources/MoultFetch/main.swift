internal import MoultLibc

// moult starts this program to send a request to a web server: one request on stdin, the response on stdout, the result
// on stderr. It is a separate program because loading libcurl takes longer than an update without changes, and because
// untrusted data should be parsed by a process without access to the store.
exit(Fetch.run())
