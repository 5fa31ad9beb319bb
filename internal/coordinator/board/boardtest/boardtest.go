// Package boardtest starts what tests of the coordinator's packages need: a queue server with a board, in the process.
package boardtest

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/queue"
	"ddiff/internal/regular"
)

// Start starts a server with an empty board, until the test ends.
func Start(t *testing.T) (*queue.Embedded, *queue.Conn, *queue.Board) {
	t.Helper()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	Must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	Must(t, err)
	Must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	b, err := queue.OpenBoard(t.Context(), nc, nil)
	Must(t, err)
	return server, nc, b
}

// CutOff makes the board refuse new records, as a server that is cut off from the others cannot write them, until restore is called.
func CutOff(t *testing.T, nc *queue.Conn) (restore func()) {
	t.Helper()
	js, err := jetstream.New(nc)
	Must(t, err)
	stream, err := js.Stream(t.Context(), "KV_DDIFF_BOARD")
	Must(t, err)
	whole := stream.CachedInfo().Config
	full := whole
	full.MaxBytes = 1
	_, err = js.UpdateStream(t.Context(), full)
	Must(t, err)
	return func() {
		_, err := js.UpdateStream(t.Context(), whole)
		Must(t, err)
	}
}

// ID returns the identity of test item n.
func ID(n int) string {
	return regular.SHA256(fmt.Append(nil, n))
}

// Must ends the test after an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
