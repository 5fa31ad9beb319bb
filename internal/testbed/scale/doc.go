// Package scale measures coordinator and queue under a load beyond the compute of this machine:
// large manifests, and simulated workers that hold each item for a drawn time instead of restoring
// it. Processes, JetStream and store are real. Its tests run a quick form; `make scale` runs all of it.
//
// # Manifests
//
// For each size, from a thousand rows up, a fresh cluster gets a campaign with a list that states
// digest and size of every image, so that no image is read. The command measures items per second
// from submission to the complete publication of the manifest, the largest resident memory of the
// coordinator (VmHWM), and the processor time per item of coordinator and NATS server.
//
// # Workers
//
// Then simulated workers share a campaign for a while. The time of an item is uniform between 0.5
// and 1.5 times the mean. busy is the share of time in which a worker holds an item, between its
// first and its last item; the dispatch latency is the time from a request for work to the lease.
//
// The last line is items=N items_per_s=N rss_mib=N busy=0.xx p50_ms=N p99_ms=N, of the largest
// manifest and of the workers.
package scale
