package testbed

import (
	"bytes"
	"io"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"
)

// fixedSeed is the seed in continuous integration, unless the variable sets another.
const (
	fixedSeed    = 1
	seedVariable = "DDIFF_CHAOS_SEED"
)

// TestChaos injects faults while a cluster restores forty items, and one while a campaign is divided into items.
func TestChaos(t *testing.T) {
	skipLong(t)
	seed := uint64(fixedSeed)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	var out bytes.Buffer
	o := short(chaosOptions{seed: seed, keep: t.TempDir(), program: program, out: io.MultiWriter(&out, writer{t})})
	begin := time.Now()
	if err := runChaos(t.Context(), o); err != nil {
		t.Fatalf("with %s=%d: %v", seedVariable, seed, err)
	}
	t.Logf("took %v", time.Since(begin))
	last := lastLine(out.String())
	for name, want := range map[string]int{
		"items": o.items + shardImages, "faults": o.faults + 1, "done": o.items + shardImages, "dead": 0, "lost": 0, "duplicates": 0,
		"seed": int(seed), "poison_dead": 0, "innocent_dead": 0,
	} {
		if got := count(last, name); got != want {
			t.Errorf("%s=%d, want %d: %s", name, got, want, last)
		}
	}
	for _, name := range []string{"redelivered", "recovery_max_s"} {
		if count(last, name) < 1 {
			t.Errorf("%s is 0, so no fault had an effect: %s", name, last)
		}
	}
}

// writer logs the output line by line.
type writer struct{ t *testing.T }

func (w writer) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimRight(p, "\n"))
	return len(p), nil
}

func TestDrawFaults(t *testing.T) {
	t.Parallel()
	const items, each, seeds = 400, 11, 10
	counts := map[kind]int{}
	for seed := range uint64(seeds) {
		faults := drawFaults(seed, each, items, true)
		for i, f := range faults {
			counts[f.kind]++
			if f.number != i+1 || f.due < 0 || f.due > items*lastDue || (i > 0 && f.due < faults[i-1].due) {
				t.Errorf("fault %v is due at %d items, after one that is due at %d", f, f.due, faults[max(i-1, 0)].due)
			}
			if f.shift.Abs() > 10*time.Minute || f.shift.Abs() < 30*time.Second {
				t.Errorf("fault %v moves a clock by %v", f, f.shift)
			}
		}
		if !reflect.DeepEqual(faults, drawFaults(seed, each, items, true)) {
			t.Error("the same seed gave other faults")
		}
		if reflect.DeepEqual(faults, drawFaults(seed+1, each, items, true)) {
			t.Error("another seed gave the same faults")
		}
		x := drawShardFault(seed, shardImages, true)
		counts[x.kind]++
		if x.due < 1 || x.due > shardImages {
			t.Errorf("fault %v is due at %d images of %d", x, x.due, shardImages)
		}
	}
	// Ten seeds of eleven faults are five decks.
	for _, k := range kinds {
		if want := each * seeds / len(kinds); counts[k] != want {
			t.Errorf("%d faults of kind %s, want %d", counts[k], k, want)
		}
	}
	for _, k := range outages {
		if want := seeds / len(outages); counts[k] != want {
			t.Errorf("%d faults of kind %s, want %d", counts[k], k, want)
		}
	}
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	faults := []happened{{fault: fault{number: 1}, at: at(10)}, {fault: fault{number: 2}, at: at(20)}, {fault: fault{number: 3}, at: at(50)}}
	settled := []time.Time{at(28), at(5), at(12), at(29)}
	if d, of := recovery(faults, settled, at(51)); d != 8*time.Second || of.number != 2 {
		t.Errorf("longest recovery %v after fault %d, want 8s after fault 2", d, of.number)
	}
	if d, of := recovery(faults, settled, at(60)); d != 10*time.Second || of.number != 3 {
		t.Errorf("without a result after the last fault: %v after fault %d, want 10s after fault 3", d, of.number)
	}
}
