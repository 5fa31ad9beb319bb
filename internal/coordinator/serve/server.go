// Package serve is the HTTP server of a cluster, or of finished outputs: the API of package api below /api/v1, its OpenAPI document, and
// the page.
//
// A route is one entry in routes.go with its role, and a handler in a file named after its subject. Handlers read through [Backend] and
// write through [Controller], which internal/coordinator/serve/cluster implements over the board.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/semaphore"

	"ddiff/api"
)

// Config describes a server. Fields without a stated default are required.
type Config struct {
	Backend Backend
	// Kind is what api.Me calls the backend, cluster or output.
	Kind string
	// Controller changes campaigns. Nil: nothing can be changed.
	Controller Controller
	// Secret is the only access token of a server for one user of this machine: its holder has the role admin, and nobody else has any. The
	// page takes it from the fragment #token= of its address. Empty: Tokens has the tokens.
	Secret string
	// Tokens has the access tokens. Nil with a Secret.
	Tokens Tokens
	// Login signs browsers in by an identity provider. Nil: they need a token.
	Login Login
	// PublicURL is the address of the server for browsers, as in https://host, which Login needs on other machines.
	PublicURL string
	// Tasks and Methods are the catalogue, as ddiff tasks --json and ddiff methods --json print it.
	Tasks, Methods json.RawMessage
	// Health are the checks behind paths for supervisors, which need no token and get no reason. Nil: none.
	Health map[string]func() error
	// Version is that of ddiff.
	Version string
	Logger  *slog.Logger
	// AnswerLimit is the time for an answer, except an event stream. Default: 1 min.
	AnswerLimit time.Duration
	// Heartbeat is the interval of comments in an event stream, with which revoked tokens are found. Default: 15 s.
	Heartbeat time.Duration
}

// Validate returns an error that names the first missing field.
func (c Config) Validate() error {
	switch {
	case c.Backend == nil:
		return errors.New("serve: Backend is missing")
	case c.Kind != "cluster" && c.Kind != "output":
		return fmt.Errorf("serve: Kind %q is neither cluster nor output", c.Kind)
	case c.Logger == nil:
		return errors.New("serve: Logger is missing")
	case (c.Secret == "") == (c.Tokens == nil):
		return errors.New("serve: want either Secret or Tokens")
	}
	return nil
}

// The limits of the server.
const (
	maxBody   = 1 << 20
	maxHeader = 64 << 10
	// maxStreams is the number of event streams, maxTokenStreams that of a token, maxAddressStreams that of a token at an address.
	maxStreams, maxTokenStreams, maxAddressStreams = 4096, 256, 64
	// deleteLimit is the time for the deletion of a campaign.
	deleteLimit = 10 * time.Minute
	// sendLimit is the time for the transfer of an answer after AnswerLimit or deleteLimit, or of an event of a stream.
	sendLimit = 10 * time.Second
)

// Server answers HTTP requests. Its methods may be called concurrently.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	api      huma.API
	hub      *hub
	memory   *semaphore.Weighted // in bytes
	pixels   *semaphore.Weighted // of pictures that are scaled
	archives *senders
	origin   *http.CrossOriginProtection
	handler  http.Handler
}

// New returns a server. Serve starts it.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.AnswerLimit, cfg.Heartbeat = cmp.Or(cfg.AnswerLimit, time.Minute), cmp.Or(cfg.Heartbeat, 15*time.Second)
	if cfg.Secret != "" {
		cfg.Tokens = &localTokens{secret: cfg.Secret, sessions: map[string]localSession{}}
	}
	s := &Server{
		cfg: cfg, mux: http.NewServeMux(), hub: newHub(),
		memory: semaphore.NewWeighted(maxMemory), pixels: semaphore.NewWeighted(maxThumbnail), archives: newSenders(),
		origin: http.NewCrossOriginProtection(),
	}
	if err := s.register(); err != nil {
		return nil, err
	}
	s.origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, api.NewError(api.ErrDenied, "the request comes from a page of another site"))
	}))
	s.handler = secured(s.identified(s.limited(s.audited(s.origin.Handler(s.reserving(s.mux))))))
	return s, nil
}

// ServeHTTP answers a request. It is for tests; Serve adds timeouts.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers the requests of a listener until ctx ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener, t TLS) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: s.cfg.AnswerLimit + sendLimit,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	if t.Cert != "" {
		var err error
		if server.TLSConfig, err = t.config(s.cfg.Logger); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.hub.follow(ctx, s.cfg.Backend, s.cfg.Logger)
	}()
	defer func() { cancel(); <-watched }()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve reports the end
	err := func() error {
		if t.Cert == "" {
			return server.Serve(l)
		}
		return server.ServeTLS(l, "", "")
	}()
	if errors.Is(err, http.ErrServerClosed) {
		return ctx.Err()
	}
	return err
}

// secured adds the headers that restrict what a browser does with an answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "+
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// limited limits the body and the time of requests. A deletion by a known caller has deleteLimit.
func (s *Server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if !isStream(r) {
			limit := s.cfg.AnswerLimit
			if r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, prefix+"/campaigns/") && identityOf(r.Context()).refused == nil {
				limit = deleteLimit
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + sendLimit)) // not in tests without a connection
			}
			ctx, cancel := context.WithTimeout(r.Context(), limit)
			defer cancel()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// isStream reports whether the answer of a request may be long: its route limits it.
func isStream(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/events") || strings.HasSuffix(r.URL.Path, "/archive")
}

// tagged adds an ETag to an answer, and answers 304 to a client that has it.
func tagged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || isStream(r) {
			next.ServeHTTP(w, r)
			return
		}
		b := &buffer{header: w.Header(), status: http.StatusOK}
		next.ServeHTTP(b, r)
		if b.status == http.StatusOK {
			sum := sha256.Sum256(b.Bytes())
			w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
			if w.Header().Get("Cache-Control") == "" {
				w.Header().Set("Cache-Control", "private, no-cache")
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.Bytes()))
			return
		}
		w.WriteHeader(b.status)
		_, _ = w.Write(b.Bytes()) // the client is gone
	})
}

// buffer is an answer in memory.
type buffer struct {
	bytes.Buffer // the body
	header       http.Header
	status       int
}

// Header returns the header of the answer.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader sets the status.
func (b *buffer) WriteHeader(status int) { b.status = status }

func writeProblem(w http.ResponseWriter, p *api.Error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(cmp.Or(p.Status, http.StatusInternalServerError))
	_ = json.NewEncoder(w).Encode(p) // the client is gone
}
