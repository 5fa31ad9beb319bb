package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
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
	// streamBuffer is the number of events that a slow client may be behind. Then its stream ends.
	streamBuffer = 256
)

// hub sends the events of a backend to all streams: one watch of the board serves all clients. A stream ends when events may have been missed;
// its client reads again what it shows.
type hub struct {
	mu      sync.Mutex
	ready   bool                     // the watch has yielded the known states, and yields changes
	streams map[chan []byte]listener // of frames, which all streams share
}

// listener is the client of a stream: the campaign that it follows, empty for all, and who it is.
type listener struct{ campaign, who string }

func newHub() *hub { return &hub{streams: map[chan []byte]listener{}} }

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
		h.end()
		if retry.Sleep(ctx, delays.NextBackOff()) != nil {
			return
		}
	}
}

// enter sends an event to the streams that it concerns, but no known states, which come before the event of kind ready.
func (h *hub) enter(e api.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = h.ready || e.Kind == api.EventReady
	if !h.ready {
		return
	}
	text := frame(e)
	for s, l := range h.streams {
		if !concerns(e, l.campaign) {
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

func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		close(s)
	}
	clear(h.streams)
	h.ready = false
}

// frame returns an event as it is sent.
func frame(e api.Event) []byte {
	data, err := json.Marshal(e)
	if err != nil { // its data is valid JSON, see Backend
		return stillHere()
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e.Kind, data)
}

// stillHere returns a comment that keeps a stream open.
func stillHere() []byte { return []byte(": still here\n\n") }

// concerns reports whether an event belongs into the stream of a campaign.
func concerns(e api.Event, campaign string) bool {
	return campaign == "" || e.Kind == api.EventReady || e.Key == campaign && (e.Kind == api.EventCampaign || e.Kind == api.EventStatus)
}

// open opens a stream. Its first event is ready: the client has the changes after it.
func (h *hub) open(l listener) (chan []byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil, api.NewError(api.ErrUnavailable, fmt.Sprintf("%d event streams are open; try again later", maxStreams))
	}
	own := 0
	for other := range maps.Values(h.streams) {
		if other.who == l.who {
			own++
		}
	}
	if own >= ownStreams {
		return nil, api.NewError(api.ErrTooMany, fmt.Sprintf("%d event streams of this caller are open; close some", ownStreams))
	}
	stream := make(chan []byte, streamBuffer)
	if h.ready {
		stream <- frame(api.Event{Kind: api.EventReady})
	}
	h.streams[stream] = l
	return stream, nil
}

func (h *hub) close(stream chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, stream)
}

// valid reports whether the token of an open stream is not revoked, as far as the board answers.
func (s *Server) valid(ctx context.Context) bool {
	if s.cfg.Tokens == nil {
		return true
	}
	_, err := s.cfg.Tokens.Token(ctx, identityOf(ctx).secret)
	return !errors.Is(err, api.ErrNoToken)
}

// events sends the events of a campaign, or of all, as server-sent events until the client leaves.
func (s *Server) events(ctx context.Context, campaign string) (*huma.StreamResponse, error) {
	stream, err := s.hub.open(listener{campaign, identityOf(ctx).who})
	if err != nil {
		return nil, Problem(err)
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
				ok = s.valid(r.Context()) && send(stillHere())
			case text, open := <-stream:
				ok = open && send(text)
			}
		}
	}}, nil
}
