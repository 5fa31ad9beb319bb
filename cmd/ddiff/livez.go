package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"ddiff/internal/lifecycle"
)

// livez answers GET /livez: 200 while the process is healthy, and 503 with the reason otherwise. It is a service of package
// lifecycle.
type livez struct {
	address string
	healthy func() error
	service lifecycle.Service
}

// Start listens and serves. The error is a usageError when the address cannot be used.
func (l *livez) Start(ctx context.Context) error { return l.service.Start(ctx, l.run) }

// Stop closes the server.
func (l *livez) Stop() { l.service.Stop() }

func (l *livez) run(ctx context.Context, ready func()) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.address)
	if err != nil {
		return usageError{fmt.Errorf("--livez: %w", err)}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", l.answer)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve reports the end
	ready()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

func (l *livez) answer(w http.ResponseWriter, _ *http.Request) {
	if err := l.healthy(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
