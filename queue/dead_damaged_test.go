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
	nc, err := server.Connect()
	must(t, err)
	q := open(t, server, queue.Config{})
	bury := func(id string) {
		must(t, publish(t.Context(), q, "c", id, nil))
		must(t, lease(t, q).Bury(t.Context(), queue.Dead{ID: id, Reason: "no light"}))
	}
	bury("first")
	_, err = nc.RequestWithContext(t.Context(), "ddiff.dead.camp", []byte("{garbage"))
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
