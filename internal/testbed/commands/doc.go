// Package commands tests the cluster commands of ddiff against real servers: NATS, S3, and
// coordinators and workers in processes of their own.
package commands
