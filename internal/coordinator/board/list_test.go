package board_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// silent is a connection to a server that receives nothing any more once silence is set, and does not close it.
type silent struct {
	net.Conn
	silence *atomic.Bool
}

// Write implements net.Conn.
func (s silent) Write(data []byte) (int, error) {
	if s.silence.Load() {
		return len(data), nil
	}
	return s.Conn.Write(data)
}

// TestListWithoutAnswer: lists end with an error if the queue server hangs.
func TestListWithoutAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("waits half a minute for an answer: make test-all")
	}
	t.Parallel()
	server, _, b := boardtest.Start(t)
	boardtest.Must(t, b.Put(t.Context(), record.KeyCampaignPrefix+"night", []byte("{}")))
	var silence atomic.Bool
	nc, err := server.ConnectThrough(func(c net.Conn) net.Conn { return silent{c, &silence} })
	boardtest.Must(t, err)
	b, err = queue.OpenBoard(t.Context(), nc, nil)
	boardtest.Must(t, err)
	silence.Store(true)
	if _, _, err := board.Campaigns(t.Context(), b); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("the server does not answer: %v", err)
	}
}
