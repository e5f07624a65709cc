internal import MoultLibc

// moult starts this program to send a request to a web server. The program reads the request from stdin, writes the response to
// stdout, and writes the reason for a failure to stderr. It is a separate program because loading libcurl takes longer than an
// update without changes, and because untrusted data should be parsed by a process without access to the store.
exit(Fetch.run())
