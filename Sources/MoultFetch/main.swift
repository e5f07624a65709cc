internal import MoultLibc

// moult starts this program to send requests to web servers. The program reads them from stdin and writes the responses to
// stdout. It is a separate program because loading libcurl takes longer than an
// update without changes, and because untrusted data should be parsed by a process without access to the store.
exit(Fetch.run())
