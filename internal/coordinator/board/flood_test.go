package board_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/record"
)

var must = boardtest.Must

// TestAttackFloodedBoard writes more records of workers than are read. A list of workers is refused at once, the others stay; and after the
// records are removed, one worker writes again.
func TestAttackFloodedBoard(t *testing.T) {
	t.Parallel()
	_, _, b := boardtest.Start(t)
	for i := range board.MaxWorkers + 1 {
		must(t, b.Put(t.Context(), fmt.Sprintf("%sfalse-%05d", record.KeyWorkerPrefix, i), []byte(`{"name":"false"}`)))
	}
	must(t, b.Put(t.Context(), record.KeyStatusPrefix+"a", []byte("{}")))
	begin := time.Now()
	if _, _, err := board.Workers(t.Context(), b); !errors.Is(err, board.ErrFlooded) {
		t.Errorf("list of a flooded board: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("a refusal took %v", took)
	}
	if n, err := board.Discard(t.Context(), b); err != nil || n != board.MaxWorkers+1 {
		t.Errorf("removed %d, %v", n, err)
	}
	must(t, b.Put(t.Context(), record.KeyWorkerPrefix+"live", []byte(`{"name":"live"}`)))
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) { // the marks of the removal end after seconds
		beats, _, err := board.Workers(t.Context(), b)
		if err == nil && len(beats) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d workers, %v", len(beats), err)
		}
	}
	if _, _, err := b.Get(t.Context(), record.KeyStatusPrefix+"a"); err != nil {
		t.Errorf("another record: %v", err)
	}
}
