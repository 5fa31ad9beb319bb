// Package clustertest runs the processes of a cluster on this machine: NATS servers, an S3
// server, coordinators and workers, each a real program with its own log file. They listen on
// 127.0.0.1 only. They can be killed, suspended and started again one by one, and all of them
// end with the process that started them, however that ends.
//
// The NATS servers use TLS with certificates that are made on the spot, and the users and
// permissions of docs/security.
package clustertest
