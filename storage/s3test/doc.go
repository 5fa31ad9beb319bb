// Package s3test runs a real S3 server, versitygw with its directory backend, for tests.
// The program is found or, once per machine, built from the Go module proxy; a test that
// needs it fails when neither is possible.
package s3test
