package ledger

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/record"
)

var id, must = boardtest.ID, boardtest.Must

func TestLedgerAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := New()
	want := map[string]State{}
	copies := map[string]int{}
	for step := range 20000 {
		one := id(random.IntN(200))
		switch to := State(random.IntN(4)); random.IntN(4) {
		case 0:
			l.Add(one)
			copies[one]++
		case 1, 2:
			was := want[one]
			n := l.Settle(one, 0, to, "because")
			moved := copies[one] > 0 && to != Pending && was != Done && was != to && (was == Pending || to == Done)
			if moved {
				want[one] = to
			}
			if (n > 0) != moved || (moved && n != copies[one]) {
				t.Fatalf("step %d: settling %v as %v moved %d items of %d", step, was, to, n, copies[one])
			}
		default:
			if copies[one] > 0 && (want[one] == Failed || want[one] == Dead) {
				if !l.Reopen(one, 0) {
					t.Fatalf("step %d: item was not reopened", step)
				}
				want[one] = Pending
			}
		}
	}
	var counts record.Counts
	open := 0
	for one, n := range copies {
		counts.Items += n
		switch want[one] {
		case Pending:
			counts.Pending += n
			open++
		case Done:
			counts.Done += n
		case Failed:
			counts.Failed += n
		case Dead:
			counts.Dead += n
		}
		if l.State(one) != want[one] {
			t.Errorf("item is %v, want %v", l.State(one), want[one])
		}
	}
	if got := l.Total(0, false); got != counts {
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
	l := New()
	for i := range maxReasons + 9 {
		l.Add(id(i))
		l.Settle(id(i), 0, Failed, fmt.Sprint(i))
	}
	last := maxReasons + 8
	if l.Reason(id(0)) != "0" || l.Reason(id(9)) != "9" || l.Reason(id(last)) != otherReason || l.Reason(id(last-1)) != otherReason {
		t.Errorf("reasons %q, %q, %q and %q", l.Reason(id(0)), l.Reason(id(9)), l.Reason(id(last-1)), l.Reason(id(last)))
	}
	if n := len(l.reasons); n != maxReasons+1 {
		t.Errorf("%d reasons are in memory, want %d", n, maxReasons+1)
	}
}

func TestLedgerIgnoresEarlierRounds(t *testing.T) {
	l := New()
	l.Add(id(1))
	l.Settle(id(1), 0, Failed, "first")
	l.Reopen(id(1), 3)
	if l.Settle(id(1), 2, Dead, "an old round") != 0 || l.State(id(1)) != Pending {
		t.Error("an outcome of an earlier round counts")
	}
	if l.Settle(id(1), 3, Failed, "again") != 1 || l.Reason(id(1)) != "again" {
		t.Error("an outcome of the new round does not count")
	}
	if l.Settle(id(1), 0, Done, "") != 1 {
		t.Error("a result in storage does not count")
	}
}

func TestLedgerTotal(t *testing.T) {
	l := New()
	for i := range 10 {
		l.Add(id(i))
	}
	l.Settle(id(0), 0, Done, "")
	if got, want := l.Total(4, false), (record.Counts{Items: 10, Done: 1, Running: 4, Pending: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := l.Total(40, true), (record.Counts{Items: 10, Done: 1, Running: 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := l.Total(0, true), (record.Counts{Items: 10, Done: 1, Cancelled: 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestLedgerRemove removes items that a store or a campaign does not have any more.
func TestLedgerRemove(t *testing.T) {
	l := New()
	for _, i := range []int{0, 0, 1, 2} {
		l.Add(id(i))
	}
	l.Settle(id(2), 0, Done, "")
	for _, c := range []struct {
		remove int
		want   record.Counts
		open   int
	}{
		{9, record.Counts{Items: 4, Pending: 3, Done: 1}, 2}, // not in the manifest
		{0, record.Counts{Items: 3, Pending: 2, Done: 1}, 2},
		{0, record.Counts{Items: 2, Pending: 1, Done: 1}, 1},
		{0, record.Counts{Items: 2, Pending: 1, Done: 1}, 1},
		{2, record.Counts{Items: 1, Pending: 1}, 1},
		{1, record.Counts{}, 0},
	} {
		l.Remove(id(c.remove))
		if got := l.Total(0, false); got != c.want || l.open != c.open {
			t.Errorf("item %d is removed: %+v with %d open, want %+v with %d", c.remove, got, l.open, c.want, c.open)
		}
	}
	if l.State(id(2)) != Done || l.State(id(1)) == Pending {
		t.Errorf("removed items are %v and %v", l.State(id(2)), l.State(id(1)))
	}
}

// An item whose result is missing is pending again, and outcomes of earlier rounds do not settle it.
func TestLedgerMarkMissing(t *testing.T) {
	l := New()
	for i := range 2 {
		l.Add(id(i))
	}
	l.Settle(id(0), 0, Done, "")
	l.Settle(id(1), 0, Failed, "no image")
	l.MarkMissing(id(0), 2)
	l.MarkMissing(id(1), 2)
	l.MarkMissing(id(7), 2) // not in the manifest
	if got, want := l.Total(0, false), (record.Counts{Items: 2, Pending: 1, Failed: 1}); got != want || l.open != 1 {
		t.Errorf("%+v with %d open, want %+v", got, l.open, want)
	}
	if l.Settle(id(0), 1, Done, "") != 0 || l.Settle(id(0), 2, Done, "") != 1 {
		t.Error("an outcome of the wrong round counts")
	}
}

// A million items must fit into a coordinator of 256 MiB, even if a tenth of them have distinct reasons.
func TestLedgerMemory(t *testing.T) {
	const items = 200_000
	before := heap()
	l := New()
	for i := range items {
		one := id(i)
		l.Add(one)
		if i%10 == 0 {
			l.Settle(one, 0, Failed, strings.Repeat("x", 150)+fmt.Sprint(i))
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
	l := New()
	for i := range 2 {
		l.Add(id(i))
	}
	l.MarkFound(id(1))
	l.MarkFound(id(7)) // not in the manifest
	for i, want := range map[int]bool{0: false, 1: true, 7: false} {
		if got := l.WasFound(id(i)); got != want {
			t.Errorf("item %d was found: %t", i, got)
		}
	}
}
