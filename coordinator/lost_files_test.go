package coordinator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/prior"
)

// priorFile writes the bundled prior as a file, with a comment, and returns path and digest.
func (tc *testCluster) priorFile(path, value string) (digest string) {
	tc.t.Helper()
	data, err := prior.Read(prior.Bundled)
	must(tc.t, err)
	data = append(slices.Clone(data), 0x32, byte(len(value))) // ModelProto.doc_string
	data = append(data, value...)
	must(tc.t, os.WriteFile(path, data, 0o644))
	return regular.SHA256(data)
}

// A prior that changes between submission and start rejects the campaign. The original file lets it start.
func TestPriorChangesAfterSubmission(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	spec := tc.spec("exchanged")
	spec.Prior = filepath.Join(t.TempDir(), "prior.onnx")
	digest := tc.priorFile(spec.Prior, "first")
	_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{PriorSHA256: digest}, time.Now())
	must(t, err)
	tc.priorFile(spec.Prior, "second")
	tc.lead()
	tc.work(spec.ID(""))
	s := tc.awaitPhase(spec.ID(""), record.PhaseRejected)
	if !strings.Contains(s.Campaign.Reason, "was submitted with "+digest[:12]) {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
	for info, err := range tc.store.List(t.Context(), "priors/") {
		must(t, err)
		t.Errorf("the exchanged prior is in the store: %s", info.Key)
	}
	if again := tc.priorFile(spec.Prior, "first"); again != digest {
		t.Fatalf("the file has the digest %s, want %s", again, digest)
	}
	_, err = recordtest.Want(t.Context(), tc.board, tc.store, spec.ID(""), record.WantRun)
	must(t, err)
	if s := tc.awaitPhase(spec.ID(""), record.PhaseFinished); s.Status.Counts.Done != 4 || s.Campaign.Prior.SHA256 != digest {
		t.Errorf("%+v, prior %+v", s.Status.Counts, s.Campaign.Prior)
	}
}

// A coordinator whose store has lost the prior copies it again from the campaign's path, unless the file has changed.
func TestPriorIsLostFromStore(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	spec := tc.spec("lost")
	spec.Prior = filepath.Join(t.TempDir(), "prior.onnx")
	digest := tc.priorFile(spec.Prior, "first")
	_, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	stop := tc.lead()
	tc.awaitPhase(spec.ID(""), record.PhasePreflight)
	stop()
	key := "priors/" + digest + ".onnx"
	must(t, tc.store.Delete(t.Context(), key))
	stop = tc.lead()
	tc.work(spec.ID(""))
	if s := tc.awaitPhase(spec.ID(""), record.PhaseFinished); s.Status.Counts.Done != 4 {
		t.Errorf("%+v", s.Status.Counts)
	}
	if _, err := tc.store.Stat(t.Context(), key); err != nil {
		t.Errorf("the store lacks the prior: %v", err)
	}

	stop()

	other := tc.spec("changed")
	other.Prior = filepath.Join(t.TempDir(), "prior.onnx")
	digest = tc.priorFile(other.Prior, "third")
	stop = tc.lead()
	_, _, err = recordtest.Submit(t.Context(), tc.board, tc.store, other, board.Order{}, time.Now())
	must(t, err)
	tc.awaitPhase(other.ID(""), record.PhasePreflight)
	stop()
	must(t, tc.store.Delete(t.Context(), "priors/"+digest+".onnx"))
	tc.priorFile(other.Prior, "fourth")
	tc.lead()
	if s := tc.awaitPhase(other.ID(""), record.PhaseRejected); !strings.Contains(s.Campaign.Reason, "was submitted with "+digest[:12]) {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
}
