package coordinator

import (
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/storage"
)

func TestIndexKeyRoundTrip(t *testing.T) {
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, e := range []indexEntry{
		{id: "night-12345678", number: 0, state: indexOpen, output: outputDigest("out")},
		{id: "night-12345678", number: 1234567, state: indexDeleting, output: outputDigest("out")},
		{id: "night-12345678", number: 3, state: indexDeleting, output: outputDigest("out"), results: true},
		{id: strings.Repeat("n", 40) + "-12345678", number: 2, state: indexArchived, output: outputDigest("out/"), row: archivedRow{
			Phase: manifest.PhaseCancelled, Priority: manifest.PriorityHigh, Weight: 1000,
			Counts:    manifest.Counts{Items: 1111000005, Pending: 5, Done: 1e9, Failed: 1e8, Dead: 1e7, Cancelled: 1e6},
			Submitted: day, Finished: day.Add(time.Hour), Archived: day.Add(2 * time.Hour),
		}},
	} {
		if err := storage.CheckKey(e.key()); err != nil {
			t.Error(err)
		}
		if got, ok := parseIndexKey(e.key()); !ok || got != e {
			t.Errorf("%s is read as %+v, %v; want %+v", e.key(), got, ok, e)
		}
	}
	if e, ok := parseIndexKey(indexPrefix + "a.1.archived.b.finished.normal.1.2.3.4.5.6.7.8.9"); !ok || e.row.Counts.Pending != 0 {
		t.Errorf("fewer items than outcomes: %+v, %t", e, ok)
	}
	for _, key := range []string{
		keyIndexed, "campaigns/a/campaign.json", indexPrefix + "a.1.unknown.b", indexPrefix + "a.x.open.b", indexPrefix + "a.-1.open.b",
		indexPrefix + ".1.open.b", indexPrefix + "a.1.archived.b", indexPrefix + "a.1.archived.b.finished.normal.1.2.3.4.5.6.7.8.x",
	} {
		if e, ok := parseIndexKey(key); ok {
			t.Errorf("%s is read as %+v", key, e)
		}
	}
}

// The newest entry counts; of two entries with one number, the entry that permits less.
func TestIndexOrder(t *testing.T) {
	ordered := []indexEntry{
		{number: 0, state: indexArchived}, {number: 0, state: indexOpen}, {number: 0, state: indexDeleting}, {number: 1, state: indexArchived},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.supersedes(b) != (i > j) {
				t.Errorf("%+v supersedes %+v: %v", a, b, i <= j)
			}
		}
	}
}

// TestArchiveDue: a wrong clock never keeps a campaign on the board for ever, and never archives an active campaign.
func TestArchiveDue(t *testing.T) {
	a := &archiver{s: &Service{cfg: Config{ArchiveAfter: time.Hour}}, all: &runners{byID: map[string]*runner{}}}
	now := time.Now()
	for _, c := range []struct {
		name     string
		campaign manifest.Campaign
		seen     time.Time
		want     bool
	}{
		{"just finished", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(-time.Minute)}, now, false},
		{"finished long ago", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(-2 * time.Hour)}, now, true},
		{"without a time", manifest.Campaign{Phase: manifest.PhaseFinished}, now, true},
		{"recalled", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(-2 * time.Hour), Recalled: now.Add(-time.Minute)}, now, false},
		{"finished in the future, seen just now", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(1000 * time.Hour)}, now, false},
		{"finished in the future, seen long ago", manifest.Campaign{Phase: manifest.PhaseFinished, Finished: now.Add(1000 * time.Hour)}, now.Add(-2 * time.Hour), true},
		{"cancelled", manifest.Campaign{Phase: manifest.PhaseCancelled, Wanted: manifest.WantCancel}, now, true},
		{"resumed", manifest.Campaign{Phase: manifest.PhaseCancelled, Wanted: manifest.WantRun}, now, false},
		{"running", manifest.Campaign{Phase: manifest.PhaseRunning, Finished: now.Add(-2 * time.Hour)}, now, false},
		{"with a command", manifest.Campaign{Phase: manifest.PhaseFinished, Commands: []manifest.Command{{ID: "1"}}}, now, false},
	} {
		if got := a.due(&c.campaign, sighting{at: c.seen}, now); got != c.want {
			t.Errorf("%s: due %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDamagedArchive changes and removes each byte of an archive.
func TestDamagedArchive(t *testing.T) {
	file := archiveFile{
		archiveHeader: archiveHeader{Schema: archiveSchema, Campaign: manifest.Campaign{
			Schema: manifest.RecordSchema, ID: "night-12345678", Output: "out", Weight: 1, Priority: manifest.PriorityLow,
		}},
		failures: []failure{{ID: "1", Outcome: manifest.OutcomeFailed, Reason: "no light"}},
	}
	data, err := file.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeArchive(data); err != nil || len(got.failures) != 1 || got.failures[0] != file.failures[0] {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range data {
		if _, err := decodeArchive(data[:i]); err == nil {
			t.Errorf("the first %d of %d bytes are read", i, len(data))
		}
		if i > 3 && i < 10 {
			continue // time and system of the gzip header
		}
		data[i] ^= 0x10
		if got, err := decodeArchive(data); err == nil && got.failures[0] != file.failures[0] {
			t.Errorf("with byte %d changed it is read as %+v", i, got)
		}
		data[i] ^= 0x10
	}
	file.Schema = archiveSchema + 1
	if data, err = file.encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeArchive(data); err == nil || !strings.Contains(err.Error(), "use one version") {
		t.Errorf("a newer archive: %v", err)
	}
}
