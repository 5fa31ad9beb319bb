package serve

import (
	"testing"

	"ddiff/api"
)

// TestAttackSenders: the files of one token's archives have a bounded share of the memory, and another token has its own. A file that is
// larger than the share counts whole.
func TestAttackSenders(t *testing.T) {
	t.Parallel()
	s := newSenders()
	begin := func(owner, address string) *sender {
		t.Helper()
		a, err := s.begin(identity{token: api.Token{Owner: owner}, address: address})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	eve, again, ann := begin("eve", "a"), begin("eve", "b"), begin("ann", "a")
	release, err := eve.acquire(t.Context(), archiveMemory-archiveShare) // more than the share
	if err != nil {
		t.Fatal(err)
	}
	if again.share.TryAcquire(1) {
		t.Error("a second file beyond the share")
	}
	other, err := ann.acquire(t.Context(), archiveShare)
	if err != nil {
		t.Errorf("the file of another token: %v", err)
	}
	if s.memory.TryAcquire(1) {
		t.Error("a file beyond all memory")
	}
	release()
	other()
	if release, err = again.acquire(t.Context(), archiveShare); err != nil {
		t.Fatalf("a file after the first: %v", err)
	}
	release()
	for _, a := range []*sender{eve, again, ann} {
		a.end()
	}
	if len(s.open)+len(s.shares) != 0 || !s.memory.TryAcquire(archiveMemory) {
		t.Errorf("%d archives and %d shares remain", len(s.open), len(s.shares))
	}
}
