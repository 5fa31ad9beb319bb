package coordinator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
)

// A damaged record is replaced by that of the store. That of a newer version stays, and one without a copy.
func TestRestoreOfDamagedRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	newer := fmt.Sprintf(`{"schema":%d}`, record.Schema+1)
	for name, tt := range map[string]struct {
		damaged, copied string // "": a sound copy
		want            bool   // restored
	}{
		"damaged":             {"{", "", true},
		"of this version":     {fmt.Sprintf(`{"schema":%d}`, record.Schema), "", true},
		"of a newer version":  {newer, "", false},
		"without a copy":      {"{", "none", false},
		"with a damaged copy": {"{", "{", false},
	} {
		r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
		ctx, key := t.Context(), record.KeyCampaignPrefix+r.id
		must(t, r.save(ctx, func(c *record.Campaign) { c.Reason = "of the copy" }))
		switch tt.copied {
		case "":
		case "none":
			must(t, r.s.cfg.Store.Delete(ctx, board.StoredKey(r.id)))
		default:
			must(t, r.s.cfg.Store.Put(ctx, board.StoredKey(r.id), []byte(tt.copied)))
		}
		must(t, r.s.cfg.Board.Put(ctx, key, []byte(tt.damaged)))
		if _, err := r.writer.Repair(ctx, r.id); (err == nil) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
		data, _, err := r.s.cfg.Board.Get(ctx, key)
		must(t, err)
		var c record.Campaign
		if restored := json.Unmarshal(data, &c) == nil && c.Reason == "of the copy"; restored != tt.want {
			t.Errorf("%s: restored %t", name, restored)
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
		key := record.KeyStatusPrefix + r.id
		if tt.status != "" {
			must(t, r.s.cfg.Board.Put(t.Context(), key, []byte(tt.status)))
		}
		must(t, r.status.read(t.Context()))
		r.status.interrupt(t.Context(), fmt.Errorf("no\n  route"), "")
		data, _, _ := r.s.cfg.Board.Get(t.Context(), key)
		var s record.Status
		if err := json.Unmarshal(data, &s); err != nil || s.Problem != tt.want {
			t.Errorf("%s: status %s", name, data)
		}
		if name == "running" && (s.Counts.Items != 7 || !s.At.Equal(now)) {
			t.Errorf("status %+v", s)
		}
	}
}
