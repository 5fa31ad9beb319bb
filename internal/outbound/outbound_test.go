package outbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ddiff/internal/outbound"
)

// TestAttackRedirect: a redirect of any kind is an answer, and no other server gets the request with its secrets.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server gets the request") }))
	defer thief.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(thief.URL, status))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("secret"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "secret")
		answer, err := outbound.Client(nil, 100).Do(r)
		if err != nil || answer.StatusCode != status {
			t.Fatalf("%d: %v, %v", status, answer, err)
		}
		_ = answer.Body.Close()
		server.Close()
	}
}

// TestAttackLongAnswer: a body up to the limit is whole, a longer one is an error.
func TestAttackLongAnswer(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{99: "", 100: "", 101: "the answer is too long", 1 << 20: "the answer is too long"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("a", n)) }))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := outbound.Client(nil, 100).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(answer.Body)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(data) != n {
			t.Errorf("of %d bytes it reads %d, %v", n, len(data), err)
		}
		_ = answer.Body.Close()
		server.Close()
	}
}
