package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/queue"
)

// TestAttackReplicas: a server without others cannot have three replicas. The error has the remedy.
func TestAttackReplicas(t *testing.T) {
	t.Parallel()
	err := queue.Setup(t.Context(), join(t, start(t, t.TempDir())), queue.SetupConfig{Replicas: 3})
	if !errors.Is(err, queue.ErrLimits) || !strings.Contains(err.Error(), "--replicas 1") {
		t.Errorf("three replicas on one server: %v", err)
	}
}

// TestReplicasOfUnsyncedWork: NATS cannot give more replicas to a stream that was made for one. The error has the remedy.
func TestReplicasOfUnsyncedWork(t *testing.T) {
	t.Parallel()
	nc := join(t, start(t, t.TempDir()))
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{UnsyncedWork: true}))
	err := queue.Setup(t.Context(), nc, queue.SetupConfig{Replicas: 3})
	if !errors.Is(err, queue.ErrConfig) || !strings.Contains(err.Error(), "nats stream rm DDIFF_WORK") {
		t.Errorf("three replicas of a stream for one: %v", err)
	}
}

// TestAttackCredentials: a file that is no credentials file is named, also where no server runs.
func TestAttackCredentials(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "noise": "not credentials\n", "half": "-----BEGIN NATS USER JWT-----\nabc\n------END NATS USER JWT------\n"} {
		file := filepath.Join(t.TempDir(), "user.creds")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: "nats://127.0.0.1:1", Credentials: file})
		if !errors.Is(err, queue.ErrConfig) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "NATS server runs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
