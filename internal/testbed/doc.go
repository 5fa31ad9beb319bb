// Package testbed runs the processes of a cluster on this machine: NATS servers, an S3 server, coordinators and workers,
// each a real program with its own log file. They listen on 127.0.0.1 only. Each can be killed, suspended and restarted,
// and all end with the process that started them, even after SIGKILL. The NATS servers use TLS with generated
// certificates, and the users and permissions of docs/security.
//
// The package consists of tests, by the prefix of their files: cluster starts the processes, commands tests the verbs
// of ddiff on a cluster, chart stops workers as the Helm chart does, chaos injects faults, scale measures under load,
// demo is the demonstration, telemetry reads back what a collector and a Prometheus receive, and compare compares two
// outputs. The test binary also runs chaos, demo, scale and telemetry at full length; see TestMain.
package testbed
