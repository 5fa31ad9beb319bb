package queue_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"ddiff/internal/queue"
)

// TestMirror: each read of a mirror has all writes of others that have ended, and costs as many requests as records have changed.
func TestMirror(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	nc := join(t, server)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	m, other := openBoard(t, nc).Mirror("campaign."), openBoard(t, join(t, server))
	const many = 50
	put := func(i int, text string) {
		t.Helper()
		must(t, other.Put(t.Context(), fmt.Sprintf("campaign.%02d", i), []byte(text)))
	}
	want := func(most uint64, records map[string]string) {
		t.Helper()
		before := nc.Stats().OutMsgs
		found, err := m.Read(t.Context())
		must(t, err)
		got := map[string]string{}
		for key, c := range found {
			if key != c.Key {
				t.Errorf("record %s is at %s", c.Key, key)
			}
			got[key] = string(c.Data)
		}
		if !maps.Equal(got, records) {
			t.Errorf("the mirror has\n%v, want\n%v", got, records)
		}
		clear(found) // it belongs to the caller
		if sent := nc.Stats().OutMsgs - before; sent > most {
			t.Errorf("a read sent %d requests, at most %d are needed", sent, most)
		}
	}
	records := map[string]string{}
	for i := range many {
		put(i, "first")
		records[fmt.Sprintf("campaign.%02d", i)] = "first"
	}
	want(many+10, records)
	want(1, records)
	put(7, "second")
	put(7, "third")
	must(t, other.Delete(t.Context(), "campaign.09"))
	must(t, other.Put(t.Context(), "status.01", []byte("another prefix")))
	records["campaign.07"] = "third"
	delete(records, "campaign.09")
	want(3, records)
	put(9, "again")
	records["campaign.09"] = "again"
	want(2, records)
	if _, err := openBoard(t, nc).Mirror("bad prefix").Read(t.Context()); err == nil || !strings.Contains(err.Error(), "bad prefix") {
		t.Errorf("a bad prefix: %v", err)
	}
}
