package coordinator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/storage"
)

func id(n int) string {
	sum := sha256.Sum256(fmt.Append(nil, n))
	return hex.EncodeToString(sum[:])
}

func TestLedgerAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := newLedger()
	want := map[string]state{}
	copies := map[string]int{}
	for step := range 20000 {
		one := id(random.IntN(200))
		switch to := state(random.IntN(4)); random.IntN(4) {
		case 0:
			l.add(one)
			copies[one]++
		case 1, 2:
			was := want[one]
			n := l.settle(one, 0, to, "because")
			moved := copies[one] > 0 && to != pending && was != done && was != to && (was == pending || to == done)
			if moved {
				want[one] = to
			}
			if (n > 0) != moved || (moved && n != copies[one]) {
				t.Fatalf("step %d: settling %v as %v moved %d items of %d", step, was, to, n, copies[one])
			}
		default:
			if copies[one] > 0 && (want[one] == failed || want[one] == dead) {
				if !l.reopen(one, 0) {
					t.Fatalf("step %d: item was not reopened", step)
				}
				want[one] = pending
			}
		}
	}
	var counts manifest.Counts
	open := 0
	for one, n := range copies {
		counts.Items += n
		switch want[one] {
		case pending:
			counts.Pending += n
			open++
		case done:
			counts.Done += n
		case failed:
			counts.Failed += n
		case dead:
			counts.Dead += n
		}
		if l.state(one) != want[one] {
			t.Errorf("item is %v, want %v", l.state(one), want[one])
		}
	}
	if got := l.total(0, false); got != counts {
		t.Errorf("counts are %+v, want %+v", got, counts)
	}
	if l.open != open {
		t.Errorf("%d identities are open, want %d", l.open, open)
	}
}

// Reasons have at most 300 bytes, and distinct ones are limited in number.
func TestLedgerReasons(t *testing.T) {
	for n, want := range map[int]int{299: 299, 300: 300, 301: 300} {
		if got := trimReason(strings.Repeat("x", n)); len(got) != want {
			t.Errorf("a reason of %d bytes has %d", n, len(got))
		}
	}
	if got := trimReason(strings.Repeat("x", 299) + "é"); got != strings.Repeat("x", 299) {
		t.Errorf("a character is cut: %q", got[290:])
	}
	l := newLedger()
	for i := range maxReasons + 9 {
		l.add(id(i))
		l.settle(id(i), 0, failed, fmt.Sprint(i))
	}
	last := maxReasons + 8
	if l.reason(id(0)) != "0" || l.reason(id(9)) != "9" || l.reason(id(last)) != otherReason || l.reason(id(last-1)) != otherReason {
		t.Errorf("reasons %q, %q, %q and %q", l.reason(id(0)), l.reason(id(9)), l.reason(id(last-1)), l.reason(id(last)))
	}
	if n := len(l.reasons); n != maxReasons+1 {
		t.Errorf("%d reasons are in memory, want %d", n, maxReasons+1)
	}
}

// An identity is the first 32 hexadecimal digits of an id.
func TestParseIdentity(t *testing.T) {
	digits := strings.Repeat("5a", 32)
	for text, want := range map[string]bool{digits: true, digits[:32]: true, digits[:31]: false, "": false, "zz" + digits[2:]: false} {
		k, ok := parseIdentity(text)
		if ok != want || ok && hex.EncodeToString(k[:]) != digits[:32] {
			t.Errorf("%q: %x, %t", text, k, ok)
		}
	}
}

func TestLedgerIgnoresEarlierRounds(t *testing.T) {
	l := newLedger()
	l.add(id(1))
	l.settle(id(1), 0, failed, "first")
	l.reopen(id(1), 3)
	if l.settle(id(1), 2, dead, "an old round") != 0 || l.state(id(1)) != pending {
		t.Error("an outcome of an earlier round counts")
	}
	if l.settle(id(1), 3, failed, "again") != 1 || l.reason(id(1)) != "again" {
		t.Error("an outcome of the new round does not count")
	}
	if l.settle(id(1), 0, done, "") != 1 {
		t.Error("a result in storage does not count")
	}
}

func TestLedgerTotal(t *testing.T) {
	l := newLedger()
	for i := range 10 {
		l.add(id(i))
	}
	l.settle(id(0), 0, done, "")
	if got, want := l.total(4, false), (manifest.Counts{Items: 10, Done: 1, Running: 4, Pending: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := l.total(40, true), (manifest.Counts{Items: 10, Done: 1, Running: 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := l.total(0, true), (manifest.Counts{Items: 10, Done: 1, Cancelled: 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestLedgerRemove removes items that a store or a campaign does not have any more.
func TestLedgerRemove(t *testing.T) {
	l := newLedger()
	for _, i := range []int{0, 0, 1, 2} {
		l.add(id(i))
	}
	l.settle(id(2), 0, done, "")
	for _, c := range []struct {
		remove int
		want   manifest.Counts
		open   int
	}{
		{9, manifest.Counts{Items: 4, Pending: 3, Done: 1}, 2}, // not in the manifest
		{0, manifest.Counts{Items: 3, Pending: 2, Done: 1}, 2},
		{0, manifest.Counts{Items: 2, Pending: 1, Done: 1}, 1},
		{0, manifest.Counts{Items: 2, Pending: 1, Done: 1}, 1},
		{2, manifest.Counts{Items: 1, Pending: 1}, 1},
		{1, manifest.Counts{}, 0},
	} {
		l.remove(id(c.remove))
		if got := l.total(0, false); got != c.want || l.open != c.open {
			t.Errorf("item %d is removed: %+v with %d open, want %+v with %d", c.remove, got, l.open, c.want, c.open)
		}
	}
	if l.state(id(2)) != done || l.state(id(1)) == pending {
		t.Errorf("removed items are %v and %v", l.state(id(2)), l.state(id(1)))
	}
}

// An item whose result is missing is pending again, and outcomes of earlier rounds do not settle it.
func TestLedgerMarkMissing(t *testing.T) {
	l := newLedger()
	for i := range 2 {
		l.add(id(i))
	}
	l.settle(id(0), 0, done, "")
	l.settle(id(1), 0, failed, "no image")
	l.markMissing(id(0), 2)
	l.markMissing(id(1), 2)
	l.markMissing(id(7), 2) // not in the manifest
	if got, want := l.total(0, false), (manifest.Counts{Items: 2, Pending: 1, Failed: 1}); got != want || l.open != 1 {
		t.Errorf("%+v with %d open, want %+v", got, l.open, want)
	}
	if l.settle(id(0), 1, done, "") != 0 || l.settle(id(0), 2, done, "") != 1 {
		t.Error("an outcome of the wrong round counts")
	}
}

// A million items must fit into a coordinator of 256 MiB, even if a tenth of them have distinct reasons.
func TestLedgerMemory(t *testing.T) {
	const items = 200_000
	before := heap()
	l := newLedger()
	for i := range items {
		one := id(i)
		l.add(one)
		if i%10 == 0 {
			l.settle(one, 0, failed, strings.Repeat("x", 150)+fmt.Sprint(i))
		}
	}
	used := heap() - before
	t.Logf("%.0f bytes an item", float64(used)/items)
	if used > 24<<20 {
		t.Errorf("the ledger takes %d MiB", used>>20)
	}
	runtime.KeepAlive(l)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLedgerFound(t *testing.T) {
	l := newLedger()
	for i := range 2 {
		l.add(id(i))
	}
	l.markFound(id(1))
	l.markFound(id(7)) // not in the manifest
	for i, want := range map[int]bool{0: false, 1: true, 7: false} {
		if got := l.wasFound(id(i)); got != want {
			t.Errorf("item %d was found: %t", i, got)
		}
	}
}

// TestForgetWindow removes the parts of one window, and those whose windows are unknown.
func TestForgetWindow(t *testing.T) {
	store, err := storage.NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{id: "c", s: &Service{cfg: Config{Store: store}}}
	for n := range 12 {
		r.checkpoint.windows = append(r.checkpoint.windows, notedWindow{partWindow: partWindow{Number: n}})
	}
	keys := []string{windowPartKey("c", 0, 2), windowPartKey("c", 3, 5), windowPartKey("c", 4, 4), windowPartKey("c", 5, 9), windowPartKey("c", 10, 11), windowPartPrefix("c") + "odd"}
	for _, key := range keys {
		if err := store.Put(t.Context(), key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.forgetWindow(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	var rest []string
	for info, err := range store.List(t.Context(), windowPartPrefix("c")) {
		if err != nil {
			t.Fatal(err)
		}
		var first, last int
		if _, err := fmt.Sscanf(strings.TrimPrefix(info.Key, windowPartPrefix("c")), "%d-%d", &first, &last); err != nil {
			t.Errorf("%s remains", info.Key)
		}
		rest = append(rest, fmt.Sprintf("%d-%d", first, last))
	}
	if got := strings.Join(rest, " "); got != "0-2 4-4 10-11" {
		t.Errorf("parts %s remain", got)
	}
	if n := len(r.checkpoint.windows); n != 11 || slices.ContainsFunc(r.checkpoint.windows, func(w notedWindow) bool { return w.Number == 5 }) {
		t.Errorf("windows %+v", r.checkpoint.windows)
	}
}
