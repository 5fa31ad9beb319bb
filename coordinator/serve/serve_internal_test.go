package serve

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/manifest"
)

// oneOutput is a backend with the output of one campaign.
type oneOutput struct {
	Backend
	output result.Output
}

// Output implements Backend.
func (b oneOutput) Output(context.Context, string) (result.Output, error) { return b.output, nil }

// TestMemoryOfFiles: answers with files and thumbnails wait for memory that others have, and return their own.
func TestMemoryOfFiles(t *testing.T) {
	t.Parallel()
	item := strings.Repeat("a", 64)
	store := reporttest.NewMemory()
	var picture bytes.Buffer
	reporttest.Must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 32))))
	store.Files[manifest.ItemKey(item, "restored.png")] = picture.Bytes()
	store.Files["index.html"] = []byte("<p>")
	s, err := New(Config{
		Backend: oneOutput{output: result.Output{Store: store}}, Kind: "output", Logger: slog.New(slog.DiscardHandler), AnswerLimit: 100 * time.Millisecond,
	})
	reporttest.Must(t, err)
	status := func(path string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+prefix+path, nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	file := "/campaigns/one/items/" + item + "/files/restored.png"
	for _, path := range []string{"/campaigns/one/report/index.html", file, file + "?width=16"} {
		if got := status(path); got != http.StatusOK || !s.memory.TryAcquire(maxMemory) {
			t.Fatalf("%s: %d; or it keeps memory", path, got)
		}
		if got := status(path); got != http.StatusServiceUnavailable {
			t.Errorf("%s without memory: %d", path, got)
		}
		s.memory.Release(maxMemory)
	}
	reporttest.Must(t, s.memory.Acquire(t.Context(), maxMemory))
	for _, path := range []string{"/campaigns/one/dead", "/compare?a=one&b=one"} {
		if got := status(path); got != http.StatusServiceUnavailable {
			t.Errorf("%s without memory: %d", path, got)
		}
	}
	s.memory.Release(maxMemory)
	if !s.pixels.TryAcquire(maxThumbnail) || status(file) != http.StatusOK || status(file+"?width=16") != http.StatusServiceUnavailable {
		t.Error("a thumbnail beside many pixels, or a file")
	}
	if err := s.reserve(t.Context(), maxMemory+1); Problem(err).Status != http.StatusConflict {
		t.Errorf("a file that is too large: %v", err)
	}
}

// TestLostBoard: streams end with the watch of the board; a stream of the next watch has the changes after its known states.
func TestLostBoard(t *testing.T) {
	t.Parallel()
	h := newHub()
	event := func(data string) api.Event {
		return api.Event{Kind: api.EventStatus, Key: "night", Data: []byte(data)}
	}
	for range 2 {
		early, err := h.open(listener{})
		reporttest.Must(t, err)
		h.enter(event("1")) // known
		h.enter(api.Event{Kind: api.EventReady})
		late, err := h.open(listener{campaign: "night"})
		reporttest.Must(t, err)
		h.enter(event("2"))
		h.end()
		for _, stream := range []chan []byte{early, late} {
			var got []byte
			for text := range stream {
				got = append(got, text...)
			}
			if !bytes.HasPrefix(got, []byte("event: ready\n")) || !bytes.Contains(got, []byte(`"data":2`)) || bytes.Count(got, []byte("event: ")) != 2 {
				t.Errorf("a stream has %q", got)
			}
		}
	}
}

// TestOwnStreams: one caller cannot take the streams of all.
func TestOwnStreams(t *testing.T) {
	t.Parallel()
	h := newHub()
	for range ownStreams {
		if _, err := h.open(listener{who: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.open(listener{who: "ann"})
	stream, other := h.open(listener{who: "bob"})
	if !errors.Is(err, api.ErrTooMany) || other != nil {
		t.Errorf("one stream more: %v; of another caller: %v", err, other)
	}
	h.close(stream)
}

// TestSlowStream: a stream whose client takes nothing ends when its buffer is full; others go on.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.ready = true
	slow, err := h.open(listener{who: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	quick, err := h.open(listener{who: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	<-quick // ready
	for range streamBuffer + 2 {
		h.enter(api.Event{Kind: api.EventStatus, Key: "night", Data: []byte("1")})
		if _, open := <-quick; !open {
			t.Fatal("the other stream has ended")
		}
	}
	n := 0
	for range slow { // until it is closed
		n++
	}
	if n != streamBuffer || len(h.streams) != 1 {
		t.Errorf("the slow stream had %d events, %d streams are left", n, len(h.streams))
	}
}
