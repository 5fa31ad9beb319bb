// Package s3test runs a real S3 server for tests: versitygw with its directory backend. It finds the program or
// builds it once per machine from the Go module proxy. A test fails if neither is possible.
package s3test
