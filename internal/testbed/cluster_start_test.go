package testbed

import (
	"slices"
	"testing"
	"time"

	"ddiff/queue"
)

// TestServers starts three servers, kills and restarts one, and stops all.
func TestServers(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Options{Dir: t.TempDir(), Program: "/bin/true", NATS: NATSOptions{Servers: 3, Secure: true}})
	defer c.Stop()
	must(t, err)
	nc, err := c.NATS.connect(t.Context(), RoleCoordinator)
	must(t, err)
	defer nc.Close()
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{Replicas: 3}))
	leader, err := c.NATS.StreamLeader(t.Context(), StreamWork)
	must(t, err)
	server := c.NATS.Servers[leader]
	server.Kill()
	if server.Running() {
		t.Errorf("%s still runs after Kill", server.Name)
	}
	must(t, server.Start())
	must(t, c.NATS.Ready(t.Context(), leader))
	must(t, c.NATS.DeleteStream(t.Context(), StreamWork))
	// A server that answers may learn of the deletion a little later than the one that made it.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		all, err := c.NATS.Streams(t.Context())
		if err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(s StreamInfo) bool { return s.Name == StreamWork }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("streams after a deletion: %v, error %v", all, err)
		}
	}
	c.Stop()
	for _, p := range append(c.NATS.Servers, c.S3.Server) {
		if p.Running() {
			t.Errorf("%s still runs after the stop of the cluster", p.Name)
		}
	}
}
