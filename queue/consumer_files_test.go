package queue_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/queue"
)

// Two processes that delete and create a consumer at the same time leave a consumer without files. Open creates it again.
func TestOpenReplacesConsumerWithoutFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	q := open(t, server, queue.Config{})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "a", ID: "one"}}))
	files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "DDIFF_WORK", "obs", "*camp"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("the consumer has the folders %v, want one", files)
	}
	must(t, os.RemoveAll(files[0]))
	q = open(t, server, queue.Config{})
	leases, err := q.Lease(t.Context(), 1, 5*time.Second)
	must(t, err)
	if len(leases) != 1 {
		t.Errorf("%d leases, want 1", len(leases))
	}
}
