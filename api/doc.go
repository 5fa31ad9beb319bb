// Package api has the types of the HTTP API of a cluster, as they travel in JSON, and [Client], a client of it.
//
// A shape is the same wherever it appears: an answer of the server, the output of a verb with --json, and a value of this package. A new
// route has its types here, its handler in coordinator/serve, and a method of [Client] if a verb needs it.
package api
