// Package clustertest runs the processes of a cluster on this machine: NATS servers, an S3 server, coordinators and
// workers, each a real program with its own log file. They listen on 127.0.0.1 only. Each can be killed, suspended and
// restarted, and all end with the process that started them, even after SIGKILL.
//
// The NATS servers use TLS with generated certificates, and the users and permissions of docs/security.
package clustertest
