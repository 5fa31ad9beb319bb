package serve

import (
	"testing"

	"ddiff/api"
)

// TestLostBoard: a board that was lost and restored begins with low ids; open streams and clients that resume get its states.
func TestLostBoard(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.enter(api.Event{ID: 10, Kind: api.EventStatus, Key: "night", Data: []byte("1")})
	h.enter(api.Event{Kind: api.EventReady})
	_, last, stream, err := h.open("", 0)
	if err != nil || last != 10 {
		t.Fatalf("opened after event %d, %v", last, err)
	}
	h.enter(api.Event{ID: 10, Kind: api.EventStatus, Key: "night", Data: []byte("1")}) // of a second watch
	h.enter(api.Event{ID: 3, Kind: api.EventStatus, Key: "night", Data: []byte("2")})
	if len(stream) != 1 || string((<-stream).Data) != "2" {
		t.Error("the stream lacks the state of the restored board, or has a known one")
	}
	missed, last, _, err := h.open("", 10)
	if err != nil || last != 3 || len(missed) != 1 || missed[0].ID != 3 {
		t.Errorf("missed %+v before event %d, %v", missed, last, err)
	}
}
