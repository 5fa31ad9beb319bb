package coordinator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// garbage are sources whose files at addresses are no networks.
type garbage struct{ manifest.Files }

func (garbage) Get(context.Context, string) ([]byte, error) { return []byte("no network"), nil }

// TestSignedNetworks: the reason of a rejection has no signature of the prior's or an operator's address.
func TestSignedNetworks(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	tc.leadWith(func(c *coordinator.Config) { c.Sources = garbage{} })
	const address = "https://host/net.onnx?X-Amz-Signature=Zq7Secret"
	for name, change := range map[string]func(s *manifest.Spec){
		"prior":    func(s *manifest.Spec) { s.Prior = address },
		"operator": func(s *manifest.Spec) { s.Tasks = []item.Task{{Name: "net", Operator: address}} },
	} {
		spec := tc.spec(name)
		change(spec)
		c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
		must(t, err)
		s := tc.awaitPhase(c.ID, record.PhaseRejected)
		if !strings.Contains(s.Campaign.Reason, "https://host/net.onnx: ") || strings.Contains(s.Campaign.Reason, "Zq7Secret") {
			t.Errorf("%s: reason %q", name, s.Campaign.Reason)
		}
	}
}
