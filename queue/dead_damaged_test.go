package queue_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/queue"
)

// TestDeadLettersSkipDamaged puts a message that is not a letter between two letters.
func TestDeadLettersSkipDamaged(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	nc := join(t, server)
	q := open(t, server, queue.Config{})
	bury := func(id string) {
		must(t, publish(t.Context(), q, "c", id, nil))
		must(t, lease(t, q).Bury(t.Context(), queue.Dead{ID: id, Reason: "no light"}))
	}
	bury("first")
	_, err := nc.RequestWithContext(t.Context(), "ddiff.dead.camp", []byte("{garbage"))
	must(t, err)
	bury("second")

	var ids []string
	var damaged uint64
	for letter, err := range q.DeadLetters(t.Context()) {
		if errors.Is(err, queue.ErrDamaged) && strings.Contains(err.Error(), "camp") && damaged == 0 {
			damaged = letter.Seq
			continue
		}
		must(t, err)
		ids = append(ids, letter.ID)
	}
	if strings.Join(ids, " ") != "first second" || damaged == 0 {
		t.Errorf("letters %q, the damaged letter has number %d", ids, damaged)
	}
	must(t, q.RemoveDead(t.Context(), damaged))
	if n := len(deadLetters(t, q)); n != 2 {
		t.Errorf("%d letters remain, want 2", n)
	}
}

// TestPurgeDead removes the letters up to a number, and those of this campaign only.
func TestPurgeDead(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q, other := open(t, server, queue.Config{}), open(t, server, queue.Config{Campaign: "other"})
	for _, id := range []string{"0", "1", "2"} {
		for _, to := range []*queue.Queue{q, other} {
			must(t, publish(t.Context(), to, "c", id, nil))
			must(t, lease(t, to).Bury(t.Context(), queue.Dead{ID: id, Reason: "no light"}))
		}
	}
	var second uint64
	for letter, err := range q.DeadLetters(t.Context()) {
		must(t, err)
		if letter.ID == "1" {
			second = letter.Seq
		}
	}
	for range 2 { // it is idempotent
		must(t, q.PurgeDead(t.Context(), second))
		if rest := deadLetters(t, q); len(rest) != 1 || rest[0].ID != "2" {
			t.Errorf("letters %+v remain, want the last", rest)
		}
	}
	if n := len(deadLetters(t, other)); n != 3 {
		t.Errorf("%d letters of the other campaign remain, want 3", n)
	}
}
