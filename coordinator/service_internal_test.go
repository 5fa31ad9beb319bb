package coordinator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// A damaged record is replaced by its stored copy. That of a newer version stays, and one without a copy.
func TestRestoreOfDamagedRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	newer := fmt.Sprintf(`{"schema":%d}`, manifest.RecordSchema+1)
	for name, tt := range map[string]struct {
		damaged, copied string // "": a sound copy
		late            bool   // the record has changed since
		want            bool   // restored
		log             string
	}{
		"damaged":                 {"{", "", false, true, "restored the record of a campaign from the store"},
		"of this version":         {fmt.Sprintf(`{"schema":%d}`, manifest.RecordSchema), "", false, true, "restored the record"},
		"of a newer version":      {newer, "", false, false, ""},
		"without a copy":          {"{", "none", false, false, ""},
		"with a damaged copy":     {"{", "{", false, false, "could not restore the record of a campaign"},
		"changed in the meantime": {"{", "", true, false, "could not restore the record of a campaign"},
	} {
		var log strings.Builder
		r := decidingRunner(t, &now, &log).onBoard(t)
		ctx, key := t.Context(), manifest.KeyCampaignPrefix+r.id
		var err error
		switch tt.copied {
		case "":
			c := *r.rec
			c.Reason = "of the copy"
			err = board.Store(ctx, r.s.cfg.Store, &c)
		case "none":
		default:
			err = r.s.cfg.Store.Put(ctx, board.StoredKey(r.id), []byte(tt.copied))
		}
		must(t, err)
		must(t, r.s.cfg.Board.Put(ctx, key, []byte(tt.damaged)))
		_, revision, err := r.s.cfg.Board.Get(ctx, key)
		must(t, err)
		if tt.late {
			revision--
		}
		log.Reset()
		r.s.restoreRecord(ctx, r.id, queue.Change{Key: key, Data: []byte(tt.damaged), Revision: revision})
		data, _, err := r.s.cfg.Board.Get(ctx, key)
		must(t, err)
		var c manifest.Campaign
		restored := json.Unmarshal(data, &c) == nil && c.Reason == "of the copy"
		if restored != tt.want || (log.Len() > 0) != (tt.log != "") || !strings.Contains(log.String(), tt.log) {
			t.Errorf("%s: restored %t, log %s", name, restored, log.String())
		}
	}
}

// The interruption of a campaign is its problem, unless it has ended.
func TestPublishedInterruption(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		status string // on the board; "": none
		want   string
	}{
		"running": {`{"id":"x","phase":"running","counts":{"items":7}}`, "interrupted, will retry: no route"},
		"ended":   {`{"id":"x","phase":"finished"}`, ""},
		"damaged": {`{`, "interrupted, will retry: no route"},
		"new":     {"", "interrupted, will retry: no route"},
	} {
		r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
		key := manifest.KeyStatusPrefix + r.id
		if tt.status != "" {
			must(t, r.s.cfg.Board.Put(t.Context(), key, []byte(tt.status)))
		}
		must(t, r.status.read(t.Context()))
		r.status.interrupt(t.Context(), fmt.Errorf("no\n  route"), "")
		data, _, _ := r.s.cfg.Board.Get(t.Context(), key)
		var s manifest.Status
		if err := json.Unmarshal(data, &s); err != nil || s.Problem != tt.want {
			t.Errorf("%s: status %s", name, data)
		}
		if name == "running" && (s.Counts.Items != 7 || !s.At.Equal(now)) {
			t.Errorf("status %+v", s)
		}
	}
}
