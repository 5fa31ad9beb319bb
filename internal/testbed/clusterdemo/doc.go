// Package clusterdemo runs a whole cluster on this machine: three NATS servers with TLS and users,
// an S3 server, two coordinators and three workers. During a campaign it kills one NATS server, the
// leading coordinator, and a worker. It ends with the line of `ddiff watch`
//
//	done=N failed=N dead=N lost=0
//
// and with exit code 0 if every item is done and none is lost. `make cluster-demo` runs it.
package clusterdemo
