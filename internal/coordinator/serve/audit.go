package serve

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"ddiff/internal/coordinator/board"
)

// auditKey is the key of what a handler notes for the log of requests.
type auditKey struct{}

// note adds attributes to the line about a request.
func note(ctx context.Context, attributes ...any) {
	if all, ok := ctx.Value(auditKey{}).(*[]any); ok {
		*all = append(*all, attributes...)
	}
}

// audited logs who did what: every request that may change something, and every other one with a wrong token or without the role that it
// needs. The answer has the id of the request.
func (s *Server) audited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := board.NewKey()
		w.Header().Set("X-Request-Id", id)
		var notes []any
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		i := identityOf(r.Context())
		by := board.Caller{Owner: i.token.Owner, Role: i.token.Role, Name: cmp.Or(i.token.Owner, i.token.ID), Request: id} // the leader's log has the request too
		ctx := board.As(context.WithValue(r.Context(), auditKey{}, &notes), by)
		next.ServeHTTP(seen, r.WithContext(ctx))
		refused := seen.status == http.StatusUnauthorized || seen.status == http.StatusForbidden
		if r.Method == http.MethodGet && (!refused || i.secret+i.session == "") || r.Method == http.MethodHead || !strings.HasPrefix(r.URL.Path, prefix+"/") {
			return
		}
		level := slog.LevelInfo
		if refused {
			level = slog.LevelWarn
		}
		path := r.URL.Path
		s.cfg.Logger.Log(r.Context(), level, "audit", append([]any{
			"request", id, "method", r.Method, "path", path[:min(len(path), 200)], "status", seen.status,
			"owner", i.token.Owner, "role", i.token.Role, "caller", i.token.ID, "address", i.address,
		}, notes...)...)
	})
}

// statusWriter knows the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader sends the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the writer of the connection to [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
