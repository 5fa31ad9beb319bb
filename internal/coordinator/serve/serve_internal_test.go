package serve

import (
	"bytes"
	"context"
	"encoding/json"
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
	"ddiff/internal/coordinator/board"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
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
	it := strings.Repeat("a", 64)
	store := reporttest.NewMemory()
	var picture bytes.Buffer
	reporttest.Must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 32))))
	store.Files[item.Key(it, "restored.png")] = picture.Bytes()
	store.Files["index.html"] = []byte("<p>")
	s, err := New(Config{
		Backend: oneOutput{output: result.Output{Store: store}}, Kind: "output", Secret: "secret", Logger: slog.New(slog.DiscardHandler), AnswerLimit: 100 * time.Millisecond,
	})
	reporttest.Must(t, err)
	status := func(path string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+prefix+path, nil)
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	file := "/campaigns/one/items/" + it + "/files/restored.png"
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
	if got := status("/compare?a=one&b=one"); got != http.StatusServiceUnavailable {
		t.Errorf("a comparison without memory: %d", got)
	}
	s.memory.Release(maxMemory)
	if !s.pixels.TryAcquire(maxThumbnail) || status(file) != http.StatusOK || status(file+"?width=16") != http.StatusServiceUnavailable {
		t.Error("a thumbnail beside many pixels, or a file")
	}
	if err := s.reserve(t.Context(), maxMemory+1); board.Problem(err).Status != http.StatusConflict {
		t.Errorf("a file that is too large: %v", err)
	}
}

// slowDeletion is a controller that records how long a deletion may take.
type slowDeletion struct {
	Controller
	ends time.Time
}

// Delete implements Controller.
func (d *slowDeletion) Delete(ctx context.Context, _ string, _, _ bool) (api.Deleted, error) {
	d.ends, _ = ctx.Deadline()
	return api.Deleted{}, nil
}

// deadlined is a connection with a write deadline.
type deadlined struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

// SetWriteDeadline is that of a connection.
func (w *deadlined) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// TestDeadlineOfDeletions: the answer of a deletion that takes its whole time can be sent; no other request has that time, and no stranger.
func TestDeadlineOfDeletions(t *testing.T) {
	t.Parallel()
	deletion := &slowDeletion{}
	s, err := New(Config{Backend: oneOutput{}, Controller: deletion, Kind: "cluster", Secret: "secret", Logger: slog.New(slog.DiscardHandler)})
	reporttest.Must(t, err)
	send := func(path, secret string) *deadlined {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://localhost"+prefix+path, nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, r)
		return w
	}
	began := time.Now()
	w := send("/campaigns/one", "secret")
	if w.Code != http.StatusOK || deletion.ends.Before(began.Add(deleteLimit)) || w.deadline.Before(deletion.ends.Add(sendLimit/2)) {
		t.Errorf("%d: the deletion ends after %s, and its answer after %s", w.Code, deletion.ends.Sub(began), w.deadline.Sub(began))
	}
	for path, secret := range map[string]string{"/campaigns/one": "false", "/tokens/0123456789ab": "secret", "/session": "secret"} {
		if w := send(path, secret); !w.deadline.IsZero() {
			t.Errorf("%s with the token %q: %d, and a deadline in %s", path, secret, w.Code, time.Until(w.deadline))
		}
	}
}

// TestCompareConditions: one campaign is compared with itself by conditions, and a wrong condition names itself.
func TestCompareConditions(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	for i, name := range []string{"a.png", "b.png", "c.png"} {
		for _, method := range []string{"ddiff", "dpir"} {
			r := reporttest.Result(t, "hdr", method, name, 0, reporttest.Scored(20+float64(i+len(method)), 18, 0.5, 0.01))
			data, err := json.Marshal(r)
			reporttest.Must(t, err)
			store.Files[item.Key(r.Item.ID, item.FileResult)] = data
		}
	}
	s, err := New(Config{Backend: oneOutput{output: result.Output{Store: store}}, Kind: "output", Secret: "secret", Logger: slog.New(slog.DiscardHandler)})
	reporttest.Must(t, err)
	for query, want := range map[string]string{
		"where_a=method=ddiff&where_b=method=dpir":                                  `"mean":1,`,
		"where=task=hdr&where=image=*.png&where_a=method=dpir&where_b=method=ddiff": `"mean":-1,`,
		"": "side A",
		"where_a=method=ddiff&where_b=method=nobody": "one side has no restored item",
		"where=tsk=hdr": "condition tsk: no result has this property",
		"where=hdr":     "want NAME=VALUE",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+prefix+"/compare?a=one&b=one&"+query, nil)
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if ok := strings.HasPrefix(want, `"`); (w.Code == http.StatusOK) != ok || !ok && w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
}

// TestHealth: supervisors need no token, and get no reason.
func TestHealth(t *testing.T) {
	t.Parallel()
	s, err := New(Config{
		Backend: oneOutput{}, Kind: "output", Secret: "secret", Logger: slog.New(slog.DiscardHandler),
		Health: map[string]func() error{"/livez": func() error { return nil }, "/readyz": func() error { return errors.New("campaign night waits") }},
	})
	reporttest.Must(t, err)
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
		if w.Code != want || strings.Contains(w.Body.String(), "night") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestLostBoard: a board that was lost and restored begins with low ids; open streams and clients that resume get its states.
func TestLostBoard(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.enter(api.Event{ID: 10, Kind: api.EventStatus, Key: "night", Data: []byte("1")})
	h.enter(api.Event{Kind: api.EventReady})
	_, last, stream, err := h.open(follower{}, 0)
	if err != nil || last != 10 {
		t.Fatalf("opened after event %d, %v", last, err)
	}
	h.enter(api.Event{ID: 10, Kind: api.EventStatus, Key: "night", Data: []byte("1")}) // of a second watch
	h.enter(api.Event{ID: 3, Kind: api.EventStatus, Key: "night", Data: []byte("2")})
	if len(stream) != 1 || !strings.Contains(string(<-stream), `"data":2`) {
		t.Error("the stream lacks the state of the restored board, or has a known one")
	}
	missed, last, _, err := h.open(follower{}, 10)
	if err != nil || last != 3 || len(missed) != 1 || missed[0].ID != 3 {
		t.Errorf("missed %+v before event %d, %v", missed, last, err)
	}
}

// TestSlowStream: a stream whose client takes nothing ends when its buffer is full; others go on.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	h := newHub()
	_, _, slow, err := h.open(follower{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _, quick, err := h.open(follower{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(streamBuffer + 2) {
		h.enter(api.Event{ID: i + 1, Kind: api.EventStatus, Key: "night", Data: []byte("1")})
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
