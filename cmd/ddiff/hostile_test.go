package main_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"ddiff/api"
	"ddiff/internal/record"
)

// hostile is a text that clears a terminal, forges a line and reverses the direction of text.
const hostile = "x\x1b[2J\r\nphase finished\u202e\u009b31m\x7f\t\u2028"

// poison sets every string below v to the hostile text, with one entry in each list and map.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		poison(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				poison(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			poison(v.Index(0))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		poison(key)
		poison(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}

// wantHarmless checks that what a command wrote has no control characters, and no line that others wrote.
func wantHarmless(t *testing.T, e ended) {
	t.Helper()
	text := e.stdout + e.stderr
	if strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp))
	}) {
		t.Errorf("a control character reaches the terminal: %q", text)
	}
	if regexp.MustCompile(`(?m)^phase finished`).MatchString(text) {
		t.Errorf("a forged line: %q", text)
	}
	if !strings.Contains(text, "phase finished") {
		t.Errorf("the text of the other machine is missing: %q", text)
	}
}

// TestAttackTerminal runs the verbs of a cluster against a server whose records are hostile.
func TestAttackTerminal(t *testing.T) {
	t.Parallel()
	answer := func(v any) http.HandlerFunc {
		poison(reflect.ValueOf(v).Elem())
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(v) //nolint:errcheck // the client notices
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/campaigns", answer(&api.Campaigns{}))
	mux.HandleFunc("POST /api/v1/campaigns", answer(&api.Submitted{}))
	mux.HandleFunc("GET /api/v1/campaigns/one", answer(&record.CampaignStatus{}))
	mux.HandleFunc("POST /api/v1/campaigns/one/pause", answer(&api.Controlled{}))
	mux.HandleFunc("GET /api/v1/campaigns/one/logs", answer(&api.Logs{}))
	mux.HandleFunc("GET /api/v1/workers", answer(&api.Workers{}))
	mux.HandleFunc("GET /api/v1/tokens", answer(&api.Tokens{}))
	ended := &record.CampaignStatus{}
	poison(reflect.ValueOf(ended).Elem())
	ended.Campaign.Phase, ended.Status.Phase = record.PhaseRejected, record.PhaseRejected
	mux.HandleFunc("GET /api/v1/campaigns/ended", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(ended) }) //nolint:errcheck // the client notices
	mux.HandleFunc("GET /api/v1/campaigns/refused", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(api.Error{Detail: hostile}) //nolint:errcheck // the client notices
	})
	file := filepath.Join(t.TempDir(), "campaign.yaml")
	write(t, file, []byte("dataset: {path: /photographs}\ntasks: [hdr]\n"))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, args := range [][]string{
		{"list"}, {"workers"}, {"status", "one"}, {"status", "--watch", "ended"}, {"logs", "one"}, {"pause", "one"}, {"token", "list"}, {"status", "refused"},
		{"list", "--json"}, {"workers", "--json"}, {"status", "--json", "one"}, {"logs", "--json", "one"}, {"token", "list", "--json"},
		{"submit", file},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			e := ddiff(t, append(args, "--server", server.URL)...)
			wantHarmless(t, e)
			if args[len(args)-1] == "--json" || len(args) > 1 && args[1] == "--json" {
				for line := range strings.Lines(e.stdout) {
					var v any
					if err := json.Unmarshal([]byte(line), &v); err != nil || !strings.Contains(flat(v), hostile) {
						t.Errorf("the JSON has another value: %v, %q", err, line)
					}
				}
			}
		})
	}
}

// flat joins all texts of a JSON value.
func flat(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, flat(one))
		}
		return strings.Join(all, " ")
	case map[string]any:
		var all []string
		for _, one := range v {
			all = append(all, flat(one))
		}
		return strings.Join(all, " ")
	}
	return ""
}

// TestAttackModelCard inspects a prior whose card is hostile, and reports a hostile result.
func TestAttackModelCard(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "p.onnx")
	entries := card(3)
	for _, key := range []string{"name", "license", "training"} {
		entries["ddiff."+key] = hostile
	}
	writePrior(t, model, 3, entries)
	wantHarmless(t, ddiff(t, "prior", "inspect", model))
	wantHarmless(t, ddiff(t, "prior", "inspect", model, "--json"))

	out := tiny(t, "--images", photographs(t, "coffee"), "--task", "hdr")
	text, err := json.Marshal(hostile)
	must(t, err)
	edit(t, filepath.Join(folderOf(t, out, "hdr"), "result.json"), `"task": "hdr"`, `"task": `+string(text))
	for _, args := range [][]string{{"report", out}, {"report", out, "--format", "md"}, {"report", out, "--format", "csv"}, {"compare", out, out}, {"verify", out}} {
		e := ddiff(t, args...)
		if args[0] == "report" && args[len(args)-1] == "csv" {
			e.stdout = strings.ReplaceAll(e.stdout, "\nphase finished", " phase finished") // a cell of a table for programs
		}
		wantHarmless(t, e)
	}
}
