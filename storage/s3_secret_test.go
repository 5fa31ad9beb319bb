package storage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"ddiff/storage"
)

func TestSecretIsRedacted(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	secret := storage.NewSecret(value)
	config := storage.S3Config{Bucket: "b", SecretKey: secret}
	hidden := struct{ inner storage.S3Config }{config}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%20v", "%.3s"} {
		for name, thing := range map[string]any{
			"secret": secret, "pointer": &secret, "config": config, "config pointer": &config,
			"unexported field": hidden, "slice": []storage.Secret{secret}, "map": map[string]storage.Secret{"k": secret},
		} {
			shown := fmt.Sprintf(verb, thing)
			if strings.Contains(shown, "hun") || strings.Contains(strings.ToLower(shown), "68756e") {
				t.Errorf("%s of a %s prints it: %s", verb, name, shown)
			}
		}
	}
	if got := fmt.Sprint(secret); got != "[redacted]" {
		t.Errorf("fmt.Sprint = %q", got)
	}
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var log bytes.Buffer
		slog.New(handler(&log)).Info("opened", "key", secret, "pointer", &secret, "config", config, "hidden", hidden)
		if strings.Contains(log.String(), value) || !strings.Contains(log.String(), "[redacted]") {
			t.Errorf("the %s log is %s", name, &log)
		}
	}
	encoded, err := json.Marshal(struct {
		Config  storage.S3Config
		Pointer *storage.Secret
		Keys    map[storage.Secret]int
	}{Config: config, Pointer: &secret, Keys: map[storage.Secret]int{secret: 1}})
	must(t, err)
	if bytes.Contains(encoded, []byte(value)) || !bytes.Contains(encoded, []byte(`"[redacted]"`)) {
		t.Errorf("JSON is %s", encoded)
	}
}

func TestSecretReveal(t *testing.T) {
	t.Parallel()
	if got := storage.NewSecret("hunter2").Reveal(); got != "hunter2" {
		t.Errorf("Reveal = %q", got)
	}
	for name, empty := range map[string]storage.Secret{"zero": {}, "empty": storage.NewSecret("")} {
		if !empty.IsZero() || empty.Reveal() != "" || fmt.Sprint(empty) != "" {
			t.Errorf("the %s secret is not empty: %q", name, fmt.Sprint(empty))
		}
	}
}
