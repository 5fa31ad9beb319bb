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
	if err != nil {
		t.Fatal(err)
	}
	nc, err := c.NATS.connect(t.Context(), RoleCoordinator)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := queue.Setup(t.Context(), nc, queue.SetupConfig{Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	leader, err := c.NATS.StreamLeader(t.Context(), StreamWork)
	if err != nil {
		t.Fatal(err)
	}
	server := c.NATS.Servers[leader]
	server.Kill()
	if server.Running() {
		t.Errorf("%s still runs after Kill", server.Name)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.NATS.Ready(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	if err := c.NATS.DeleteStream(t.Context(), StreamWork); err != nil {
		t.Fatal(err)
	}
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
