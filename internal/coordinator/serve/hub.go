package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"ddiff/api"
	"ddiff/internal/retry"
)

const (
	// streamAge is the age at which a stream ends, so that clients spread over coordinators that have started since.
	streamAge = 15 * time.Minute
	// streamBuffer is the number of events that a slow client may be behind. Then its stream ends, and it resumes with the newest states.
	streamBuffer = 256
)

// hub has the newest event of every record, and sends new ones to all streams: one watch of the board serves all clients. A client that
// resumes gets the newest state of each record that has changed since, also from another coordinator.
type hub struct {
	mu     sync.Mutex
	newest map[[2]string]api.Event // by kind and key
	last   uint64
	ready  chan struct{} // closed when newest is complete
	// streams are the clients by the channels of their frames, which all streams share.
	streams map[chan []byte]follower
}

// follower is a client of a stream: its token, empty for the only user of a server, its address, and the campaign that it follows, empty for all.
type follower struct{ token, address, campaign string }

func newHub() *hub {
	return &hub{newest: map[[2]string]api.Event{}, ready: make(chan struct{}), streams: map[chan []byte]follower{}}
}

// follow enters the events of a backend until ctx ends.
func (h *hub) follow(ctx context.Context, b Backend, log *slog.Logger) {
	for delays := retry.NewBackOff(100*time.Millisecond, 10*time.Second); ; {
		for e, err := range b.Watch(ctx) {
			if err != nil {
				log.Warn("cannot follow the cluster, will retry", "reason", err)
				break
			}
			h.enter(e)
		}
		if retry.Sleep(ctx, delays.NextBackOff()) != nil {
			return
		}
	}
}

// enter enters an event.
func (h *hub) enter(e api.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Kind == api.EventReady {
		if !h.isReady() {
			close(h.ready)
		}
		return
	}
	h.last = e.ID
	k := [2]string{e.Kind, e.Key}
	if known := h.newest[k]; known.ID == e.ID && bytes.Equal(known.Data, e.Data) {
		return // a second watch begins with known states; those of a board that was lost and restored have lower ids
	}
	if h.newest[k] = e; len(e.Data) == 0 && len(h.newest) > 10_000 { // removed records would stay forever
		delete(h.newest, k)
	}
	text := frame(e)
	for s, f := range h.streams {
		if !concerns(e, f.campaign) {
			continue
		}
		select {
		case s <- text:
		default:
			delete(h.streams, s)
			close(s)
		}
	}
}

// frame returns an event as it is sent; an event without an id is a comment that keeps a stream open.
func frame(e api.Event) []byte {
	data, err := json.Marshal(e)
	if e.ID == 0 || err != nil { // its data is valid JSON, see Backend
		return []byte(": still here\n\n")
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data)
}

func (h *hub) isReady() bool {
	select {
	case <-h.ready:
		return true
	default:
		return false
	}
}

// concerns reports whether an event belongs into the stream of a campaign.
func concerns(e api.Event, campaign string) bool {
	return campaign == "" || e.Key == campaign && (e.Kind == api.EventCampaign || e.Kind == api.EventStatus)
}

// open opens a stream of a client after the event with an id, 0 for none before. It returns the missed events and the newest id.
func (h *hub) open(f follower, after uint64) (missed []api.Event, last uint64, stream chan []byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ofToken, ofAddress := 0, 0
	for _, other := range h.streams {
		if other.token == f.token {
			if ofToken++; other.address == f.address {
				ofAddress++
			}
		}
	}
	switch {
	case len(h.streams) >= maxStreams:
		return nil, 0, nil, api.NewError(api.ErrUnavailable, fmt.Sprintf("%d event streams are open; try again later", maxStreams))
	case f.token != "" && (ofToken >= maxTokenStreams || ofAddress >= maxAddressStreams):
		return nil, 0, nil, api.NewError(api.ErrUnavailable, fmt.Sprintf("%d event streams of this token are open, %d of them from this address; close some", ofToken, ofAddress))
	}
	if after > 0 {
		if after > h.last {
			after = 0 // an id of a board that was lost: everything may have changed
		}
		for e := range maps.Values(h.newest) {
			if e.ID > after && concerns(e, f.campaign) {
				missed = append(missed, e)
			}
		}
		slices.SortFunc(missed, func(a, b api.Event) int { return cmp.Compare(a.ID, b.ID) })
	}
	stream = make(chan []byte, streamBuffer)
	h.streams[stream] = f
	return missed, h.last, stream, nil
}

func (h *hub) close(stream chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, stream)
}

// valid reports whether the token and the session of an open stream have not ended, as far as the board answers.
func (s *Server) valid(ctx context.Context) bool {
	i := identityOf(ctx)
	return !errors.Is(s.authenticate(ctx, &i), api.ErrNoToken)
}

// events sends the events of a campaign, or of all, as server-sent events until the client leaves.
func (s *Server) events(ctx context.Context, campaign, lastID string) (*huma.StreamResponse, error) {
	var after uint64
	if lastID != "" {
		var err error
		if after, err = strconv.ParseUint(lastID, 10, 64); err != nil {
			return nil, api.NewError(api.ErrInvalid, "Last-Event-ID: want the id of an event")
		}
	}
	select {
	case <-s.hub.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(sendLimit):
		return nil, api.NewError(api.ErrUnavailable, "the coordinator cannot read the board yet")
	}
	i := identityOf(ctx)
	missed, last, stream, err := s.hub.open(follower{strings.TrimSpace(i.token.Owner + " " + i.token.ID), i.address, campaign}, after)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer s.hub.close(stream)
		r, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Accel-Buffering", "no")
		out := http.NewResponseController(w)
		// send sends a frame, and those that wait behind it.
		send := func(text []byte) bool {
			_ = out.SetWriteDeadline(time.Now().Add(sendLimit)) // not in tests without a connection
			_, err := w.Write(text)
			for n := len(stream); n > 0 && err == nil; n-- {
				_, err = w.Write(<-stream) // nil if the stream was closed meanwhile
			}
			return err == nil && out.Flush() == nil
		}
		for _, e := range missed {
			if _, err := w.Write(frame(e)); err != nil {
				return
			}
		}
		if !send(frame(api.Event{ID: max(last, 1), Kind: api.EventReady})) {
			return
		}
		tick := time.NewTicker(s.cfg.Heartbeat)
		defer tick.Stop()
		end := time.After(streamAge)
		for ok := true; ok; {
			select {
			case <-end:
				return
			case <-r.Context().Done():
				return
			case <-tick.C:
				ok = s.valid(r.Context()) && send(frame(api.Event{}))
			case text, open := <-stream:
				ok = open && send(text)
			}
		}
	}}, nil
}
