// Package serve is the HTTP server of a cluster, or of finished outputs: the API of package api below /api/v1, its OpenAPI document, and
// the page.
//
// A route is one entry in routes.go with its role, and a handler in a file named after its subject. Handlers read through [Backend] and
// write through [Controller], which coordinator/serve/cluster implements over the board.
package serve
