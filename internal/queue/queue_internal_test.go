package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestNameLimits has names and ids at their limits.
func TestNameLimits(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"": false, "a": true, strings.Repeat("a", MaxNameBytes): true, strings.Repeat("a", MaxNameBytes+1): false} {
		if _, err := token("Campaign", name); (err == nil) != want || err != nil && !errors.Is(err, ErrBadName) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
	for id, want := range map[string]bool{
		"": false, "a": true, strings.Repeat("a", MaxIDBytes): true, strings.Repeat("a", MaxIDBytes+1): false,
		"a b": true, " a": false, "a ": false, "a\n": false, "a\x00b": false, "\xff": false, "größe": true,
	} {
		if err := checkID(id); (err == nil) != want || err != nil && !errors.Is(err, ErrBadName) {
			t.Errorf("id %.20q of %d bytes: %v", id, len(id), err)
		}
	}
	for name, want := range map[string]string{"azAZ09-_": "azAZ09-_", "`{@[/:": "=60=7B=40=5B=2F=3A", ".=": "=2E=3D"} {
		if got := Token(name); got != want {
			t.Errorf("token of %q is %q", name, got)
		}
	}
	for _, bad := range []string{"=", "=4", "=4G", "a=41="} {
		if name, err := untoken(bad); !errors.Is(err, ErrBadName) {
			t.Errorf("token %q is %q, %v", bad, name, err)
		}
	}
}

// TestConfigLimits has every number at and beyond its limits.
func TestConfigLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"shortest lease":   {func(c *Config) { c.AckWait = 10 * time.Millisecond }, ""},
		"shorter lease":    {func(c *Config) { c.AckWait = 10*time.Millisecond - 1 }, "AckWait"},
		"one attempt":      {func(c *Config) { c.MaxAttempts = 1 }, ""},
		"negative number":  {func(c *Config) { c.MaxAttempts = -1 }, "MaxAttempts"},
		"five servers":     {func(c *Config) { c.Replicas = 5 }, ""},
		"six servers":      {func(c *Config) { c.Replicas = 6 }, "Replicas"},
		"negative servers": {func(c *Config) { c.Replicas = -1 }, "Replicas"},
		"negative timeout": {func(c *Config) { c.Timeout = -1 }, "Timeout"},
		"short timeout":    {func(c *Config) { c.Timeout = 1 }, ""},
		"no campaign":      {func(c *Config) { c.Campaign = "" }, "Campaign"},
		"long campaign":    {func(c *Config) { c.Campaign = strings.Repeat("c", MaxNameBytes+1) }, "Campaign"},
	} {
		cfg := Config{Campaign: "c"}
		c.change(&cfg)
		err := cfg.Validate()
		sentinel := ErrConfig
		if c.want == "Campaign" {
			sentinel = ErrBadName
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, sentinel) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message has the headers of its identity; round 0 has none.
func TestIdentityHeaders(t *testing.T) {
	t.Parallel()
	for round, wanted := range map[int]string{0: "", 1: "1", 12: "12"} {
		i := identity{campaign: "c", epoch: 5, round: round, id: "x"}
		msg, err := i.message(t.Context(), "s", []byte("p"))
		if err != nil || msg.Header.Get(headerRound) != wanted || msg.Header.Get(jetstream.MsgIDHeader) != i.messageID() {
			t.Errorf("round %d: %v, %v", round, msg, err)
			continue
		}
		if got := identityOf("c", msg.Header); got != i {
			t.Errorf("%+v is read as %+v", i, got)
		}
	}
	if _, err := (identity{campaign: "c", id: "x", round: -1}).message(t.Context(), "s", nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a negative round: %v", err)
	}
	for attempt, want := range map[int][2]bool{2: {false, false}, 3: {true, false}, 4: {true, true}} {
		l := &Lease{q: &Queue{cfg: Config{MaxAttempts: 3}}, attempt: attempt}
		if l.Last() != want[0] || l.Exhausted() != want[1] || l.Attempt() != attempt {
			t.Errorf("attempt %d of 3: last %t, exhausted %t", attempt, l.Last(), l.Exhausted())
		}
	}
}

// Versions are compared part by part; one that cannot be read is not older.
func TestOlderVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"2.11.3": false, "2.11.2": true, "2.11.4": false, "2.10.9": true, "2.12.0": false, "1.99.99": true, "3.0.0": false, "v2.11.2": true,
		"2.11.2-RC.1": true, "2.11.3-RC.1": false, "2.11": false, "2.10.x": false, "": false, "1.2.3.4": false,
	} {
		if olderThan(version, "2.11.3") != want {
			t.Errorf("version %q is older: %t, want %t", version, !want, want)
		}
	}
}

// TestStreams: every stream refuses messages at its limit instead of discarding old ones, and only the named limits exist.
func TestStreams(t *testing.T) {
	t.Parallel()
	streams := map[string]jetstream.StreamConfig{}
	c := SetupConfig{Replicas: 3, MaxResults: -1}.WithDefaults()
	for _, s := range c.streams() {
		streams[s.Name] = s
		if s.Discard != jetstream.DiscardNew || s.Storage != jetstream.FileStorage || s.Replicas != 3 || s.MaxConsumers != 1<<20 || s.MaxMsgSize != -1 ||
			s.PersistMode != jetstream.DefaultPersistMode {
			t.Errorf("stream %+v", s)
		}
	}
	for name, want := range map[string]struct {
		bytes, messages, each int64
		age                   time.Duration
	}{
		workStream: {-1, -1, -1, 0}, resultStream: {-1, -1, -1, retention},
		boardStream: {-1, -1, 1, 0},
	} {
		s := streams[name]
		if s.MaxBytes != want.bytes || s.MaxMsgs != want.messages || s.MaxMsgsPerSubject != want.each || s.MaxAge != want.age {
			t.Errorf("%s: %d bytes, %d messages, %d for each subject, %v", name, s.MaxBytes, s.MaxMsgs, s.MaxMsgsPerSubject, s.MaxAge)
		}
	}
	if s := (SetupConfig{UnsyncedWork: true}).WithDefaults().streams(); s[0].Name != workStream || s[0].PersistMode != jetstream.AsyncPersistMode {
		t.Errorf("unsynced work: %+v", s[0])
	}
}

// TestNextEpoch: epochs grow, also where the clock is behind the newest one.
func TestNextEpoch(t *testing.T) {
	t.Parallel()
	q := &Queue{cfg: Config{Now: func() time.Time { return time.Unix(0, 100) }}}
	for newest, want := range map[int64]int64{0: 100, 98: 100, 99: 100, 100: 101, 500: 501} {
		q.epoch.Store(newest)
		if got := q.nextEpoch(); got != want {
			t.Errorf("after the epoch %d: %d, want %d", newest, got, want)
		}
	}
}

// TestConnectionOptions: a lost connection is restored without a limit of attempts, also after refused credentials, and nothing is sent from
// a buffer after the deadline of its caller. A dead connection is noticed after two pings.
func TestConnectionOptions(t *testing.T) {
	t.Parallel()
	list, err := ConnectConfig{URL: "nats://a", Name: "me", Role: "worker", Logger: slog.New(slog.DiscardHandler)}.options()
	must(t, err)
	o := nats.GetDefaultOptions()
	for _, option := range list {
		must(t, option(&o))
	}
	if o.MaxReconnect != -1 || o.ReconnectBufSize != -1 || !o.IgnoreAuthErrorAbort || !o.AllowReconnect {
		t.Errorf("%d reconnects, a buffer of %d bytes, ends at refused credentials %v", o.MaxReconnect, o.ReconnectBufSize, !o.IgnoreAuthErrorAbort)
	}
	if o.PingInterval != 10*time.Second || o.MaxPingsOut != 2 || o.Timeout != 5*time.Second || o.ReconnectWait != 500*time.Millisecond {
		t.Errorf("pings every %v up to %d, %v for a dial, %v between two", o.PingInterval, o.MaxPingsOut, o.Timeout, o.ReconnectWait)
	}
	if o.Name != "me" || o.InboxPrefix != "_INBOX_worker" {
		t.Errorf("name %q, inboxes %q", o.Name, o.InboxPrefix)
	}
	// The same holds for the embedded server.
	server, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	defer server.Stop()
	nc, err := server.Connect()
	must(t, err)
	if nc.Opts.MaxReconnect != -1 || nc.Opts.ReconnectWait != 100*time.Millisecond {
		t.Errorf("embedded: %d reconnects, %v between two", nc.Opts.MaxReconnect, nc.Opts.ReconnectWait)
	}
}

// TestRedacted: a displayed address has no user, password or token.
func TestRedacted(t *testing.T) {
	t.Parallel()
	for urls, want := range map[string]string{
		"tls://user:hunter2@a:1, token@b": "tls://a:1,nats://b", "nats://user:hunter2/x@b:4222": "(not an address)",
	} {
		if got := redacted(urls); got != want {
			t.Errorf("redacted: %s, want %s", got, want)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		usage StreamUsage
		want  float64
	}{
		"no limits":      {StreamUsage{Messages: 5, Bytes: 5, MaxMessages: -1, MaxBytes: -1}, 0},
		"zero limits":    {StreamUsage{Messages: 5, Bytes: 5}, 0},
		"messages alone": {StreamUsage{Messages: 1, Bytes: 5, MaxMessages: 4}, 0.25},
		"bytes alone":    {StreamUsage{Messages: 5, Bytes: 1, MaxBytes: 2}, 0.5},
		"more messages":  {StreamUsage{Messages: 3, Bytes: 1, MaxMessages: 4, MaxBytes: 2}, 0.75},
		"more bytes":     {StreamUsage{Messages: 1, Bytes: 2, MaxMessages: 4, MaxBytes: 2}, 1},
	} {
		if got := tc.usage.Fill(); got != tc.want {
			t.Errorf("%s: fill %v, want %v", name, got, tc.want)
		}
	}
	if !(StreamUsage{Name: resultStream}).Results() || (StreamUsage{Name: workStream}).Results() {
		t.Error("another stream than that of the results has them")
	}
}

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	q := &Queue{cfg: Config{RetryBase: time.Second}}
	for attempt, full := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		seen := map[time.Duration]bool{}
		for range 100 {
			delay := (&Lease{q: q, attempt: attempt}).RetryDelay()
			if delay < full/2 || delay > full {
				t.Fatalf("delay %v after attempt %d, want %v to %v", delay, attempt, full/2, full)
			}
			seen[delay] = true
		}
		if len(seen) < 90 {
			t.Errorf("attempt %d: 100 leases have only %d delays", attempt, len(seen))
		}
	}
}

// TestForgedCounts: a negative count of passes would end a worker, and a huge number of attempts occupy it.
func TestForgedCounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "x": 0, "7": 7, "-1": 0, "9223372036854775807": maxCount, "9223372036854775808": 0, "-9223372036854775808": 0,
	} {
		if n := intHeader(nats.Header{headerPasses: {text}}, headerPasses); n != want {
			t.Errorf("%q is %d, want %d", text, n, want)
		}
	}
}

// TestForgottenDeletions: the server removes the mark of a deletion after tombstoneAge. A watcher that could not read for so long yields
// the deletion nevertheless, whatever the last record was that it has read.
func TestForgottenDeletions(t *testing.T) {
	t.Parallel()
	server, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	must(t, Setup(t.Context(), nc, SetupConfig{}))
	b, err := OpenBoard(t.Context(), nc, nil)
	must(t, err)
	for prefix, lastDeleted := range map[string]bool{"put.": false, "deleted.": true} {
		for _, name := range []string{"gone", "kept", "last"} {
			must(t, b.Put(t.Context(), prefix+name, []byte(name)))
		}
		if lastDeleted {
			must(t, b.Discard(t.Context(), prefix+"last"))
		}
		w, err := b.watcher(prefix)
		must(t, err)
		_, err = w.list(t.Context())
		must(t, err)
		must(t, b.Discard(t.Context(), prefix+"gone"))
		for marked := true; marked; {
			time.Sleep(10 * time.Millisecond)
			names, err := b.Names(t.Context(), prefix)
			must(t, err)
			marked = slices.Contains(names, prefix+"gone")
		}
		w.read = time.Now().Add(-tombstoneAge)
		var deleted []string
		_, err = w.readChanges(t.Context(), func(c Change) bool {
			if c.Deleted {
				deleted = append(deleted, strings.TrimPrefix(c.Key, prefix))
			}
			return true
		})
		must(t, err)
		if !slices.Contains(deleted, "gone") || slices.Contains(deleted, "kept") {
			t.Errorf("%s the watcher yields the deletions of %v", prefix, deleted)
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"a", "a.b", "größe >*", "=41", "A", "\x00\xff"} {
		f.Add(seed, "a=2Eb")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ta, errA := token("name", a)
		tb, errB := token("name", b)
		if errA != nil || errB != nil {
			return
		}
		for _, c := range []byte(ta) {
			if c <= ' ' || c >= 0x7f || c == '.' || c == '*' || c == '>' || c == '/' || c == '\\' {
				t.Fatalf("token(%q) = %q has %q", a, ta, c)
			}
		}
		if back, err := untoken(ta); err != nil || back != a {
			t.Fatalf("token(%q) = %q, which stands for %q, %v", a, ta, back, err)
		}
		if (a == b) != (ta == tb) {
			t.Fatalf("token(%q) = %q, token(%q) = %q", a, ta, b, tb)
		}
	})
}

// TestServerLog: notices are debug messages, problems are warnings, and the first fatal message is the failure of the server.
func TestServerLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	l := &serverLog{logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for level, writes := range map[string][]func(string, ...any){"DEBUG": {l.Noticef, l.Debugf, l.Tracef}, "WARN": {l.Warnf, l.Errorf}} {
		for i, write := range writes {
			text.Reset()
			write("message %d", i)
			if !strings.Contains(text.String(), "level="+level+" ") || !strings.Contains(text.String(), "message ") {
				t.Errorf("%s message %d: %q", level, i, text.String())
			}
		}
	}
	if err := l.failure(); err != nil {
		t.Errorf("failure %v before a fatal message", err)
	}
	l.Fatalf("fatal %s", "one")
	l.Fatalf("fatal %s", "two")
	if err := l.failure(); err == nil || err.Error() != "fatal one" || !strings.Contains(text.String(), "fatal two") {
		t.Errorf("failure %v, want the first message; the log is %q", err, text.String())
	}
}

// TestErrorClasses has the errors of the client and the server that a call repeats, and the sentinels of the others.
func TestErrorClasses(t *testing.T) {
	t.Parallel()
	api := func(status int, code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("publish: %w", &jetstream.APIError{Code: status, ErrorCode: code, Description: text})
	}
	for name, c := range map[string]struct {
		err       error
		transient bool
		sentinel  error
	}{
		"no responders":             {nats.ErrNoResponders, true, nil},
		"no answer of a stream":     {jetstream.ErrNoStreamResponse, true, nil},
		"timeout":                   {nats.ErrTimeout, true, nil},
		"deadline":                  {context.DeadlineExceeded, true, nil},
		"connection lost":           {context.Canceled, true, nil},
		"disconnected":              {nats.ErrDisconnected, true, nil},
		"reconnecting":              {nats.ErrConnectionReconnecting, true, nil},
		"closed":                    {nats.ErrConnectionClosed, false, ErrClosed},
		"payload":                   {nats.ErrMaxPayload, false, ErrTooLarge},
		"permission":                {nats.ErrPermissionViolation, false, ErrAccess},
		"stream is missing":         {jetstream.ErrStreamNotFound, false, ErrNotReady},
		"consumer is missing":       {jetstream.ErrConsumerNotFound, false, ErrNotReady},
		"consumer was deleted":      {jetstream.ErrConsumerDeleted, false, ErrNotReady},
		"bucket is missing":         {jetstream.ErrBucketNotFound, false, ErrNotReady},
		"a server is down":          {api(400, codeNoPeers, "no suitable peers"), true, nil},
		"files are being removed":   {api(500, codeConsumerCreate, "rename o.dat.tmp: no such file or directory"), true, nil},
		"no leader":                 {api(503, 10008, "temporarily unavailable"), true, nil},
		"another status":            {api(500, 10008, "internal"), false, nil},
		"JetStream is off":          {api(503, jetstream.JSErrCodeJetStreamNotEnabled, "off"), false, nil},
		"JetStream is off here":     {api(503, jetstream.JSErrCodeJetStreamNotEnabledForAccount, "off"), false, nil},
		"account is full":           {api(503, codeAccountResources, "resources"), false, ErrFull},
		"server is full":            {api(503, codeResources, "resources"), false, ErrFull},
		"memory is full":            {api(503, codeMemory, "memory"), false, ErrFull},
		"disk is full":              {api(503, codeStorage, "storage"), false, ErrFull},
		"stream is full":            {api(503, codeStoreFailed, "maximum messages exceeded"), false, ErrFull},
		"no space":                  {api(503, codeStoreFailed, "write: no space left on device"), false, ErrFull},
		"another failure of a disk": {api(503, codeStoreFailed, "input/output error"), true, nil},
		"one server only":           {api(400, codeReplicas, "replicas > 1 not supported in non-clustered mode"), false, ErrLimits},
		"streams of the account":    {api(400, codeMaxStreams, "maximum number of streams reached"), false, ErrLimits},
		"consumers of the account":  {api(400, codeMaxConsumers, "maximum consumers limit reached"), false, ErrLimits},
		"any other error":           {errors.New("odd"), false, nil},
	} {
		if got := transient(c.err); got != c.transient {
			t.Errorf("%s: transient %t", name, got)
		}
		mapped := serverError(c.err)
		if !errors.Is(mapped, c.err) || c.sentinel != nil && !errors.Is(mapped, c.sentinel) {
			t.Errorf("%s: error %v, want %v", name, mapped, c.sentinel)
		}
		if again := serverError(mapped); again != mapped { //nolint:errorlint // not wrapped twice
			t.Errorf("%s: error %v after a second call", name, again)
		}
		for _, other := range []error{ErrClosed, ErrTooLarge, ErrAccess, ErrNotReady, ErrFull, ErrLimits} {
			if other != c.sentinel && errors.Is(mapped, other) { //nolint:errorlint // sentinels
				t.Errorf("%s: error %v is also %v", name, mapped, other)
			}
		}
	}
	for code, want := range map[jetstream.ErrorCode]bool{codeWrongLastSequence: true, codeWrongLastConstant: true, codeStorage: false} {
		if conflict(api(400, code, "wrong last sequence")) != want {
			t.Errorf("code %d: conflict %t", code, !want)
		}
	}
	if conflict(errors.New("odd")) || conflict(nil) {
		t.Error("an error without a code is a conflict")
	}
}

// The end of a pull request without items is no error; an end by the server is an outage.
func TestFetchErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, context.DeadlineExceeded, nats.ErrTimeout} {
		if got := fetchError(err); got != nil {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, err := range []error{
		jetstream.ErrNoHeartbeat, jetstream.ErrServerShutdown, jetstream.ErrConsumerLeadershipChanged, nats.ErrNoResponders, nats.ErrDisconnected,
	} {
		if got := fetchError(err); !errors.Is(got, ErrUnavailable) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := fetchError(jetstream.ErrConsumerDeleted); !errors.Is(got, ErrNotReady) || errors.Is(got, ErrUnavailable) {
		t.Errorf("a deleted consumer: %v", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestScan: two scans publish all items of a campaign again that the server no longer delivers, and two more sweep them. Waiting and
// leased items stay.
func TestScan(t *testing.T) {
	t.Parallel()
	server, err := StartEmbedded(t.Context(), EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	const items = 3
	campaign := func(name string) *Queue {
		t.Helper()
		q, err := Open(t.Context(), nc, Config{Campaign: name, MaxAttempts: 1})
		for i := range items {
			err = errors.Join(err, q.PublishBatch(t.Context(), []Work{{Class: "c", ID: fmt.Sprint(i)}}))
		}
		// The consumer learns of an item later than the stream.
		for pending := uint64(0); err == nil && pending < items; {
			pending, _, err = q.Depth(t.Context())
		}
		must(t, err)
		return q
	}
	lease := func(q *Queue, n int) []*Lease {
		t.Helper()
		leases, err := q.Lease(t.Context(), n, 0)
		must(t, err)
		return leases
	}
	waiting, leased, exhausted := campaign("waiting"), campaign("leased"), campaign("exhausted")
	if n := len(lease(leased, items)); n != items {
		t.Fatalf("%d leases, want %d", n, items)
	}
	exhaust := func() {
		t.Helper()
		for range items * (deliveriesPerAttempt + spareDeliveries) {
			for _, l := range lease(exhausted, 1) {
				must(t, l.Retry(t.Context(), 0))
			}
		}
		if n := len(lease(exhausted, 1)); n != 0 {
			t.Fatalf("%d leases of exhausted items", n)
		}
		for deadline := time.Now().Add(20 * time.Second); ; { // the server updates its counts a moment later
			pending, inFlight, err := exhausted.Depth(t.Context())
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%d items wait and %d are leased: %v", pending, inFlight, err)
			}
			if pending == 0 && inFlight == 0 {
				break
			}
		}
	}
	exhaust()

	l, err := newLink(nc, slog.New(slog.DiscardHandler), defaultTimeout)
	must(t, err)
	s := &sweeper{link: l, cfg: SweepConfig{Outcome: func() ([]byte, error) { return []byte("dead"), nil }}}
	for scan, left := range []uint64{items, items, items, items, 0, 0} {
		if scan == 3 {
			exhaust()
		}
		if err := s.scan(t.Context()); err != nil {
			t.Fatalf("scan %d: %v", scan+1, err)
		}
		for q, want := range map[*Queue]uint64{waiting: items, leased: items, exhausted: left} {
			if size, err := q.Size(t.Context()); err != nil || size != want {
				t.Errorf("after scan %d the campaign %s has %d items, want %d (%v)", scan+1, q.cfg.Campaign, size, want, err)
			}
		}
	}
	var swept []string
	for r, err := range exhausted.Results(t.Context(), 0) {
		if err != nil || string(r.Payload) != "dead" {
			t.Fatalf("outcome %+v, %v", r, err)
		}
		if swept = append(swept, r.ID); r.Behind == 0 {
			break
		}
	}
	if !slices.Equal(swept, []string{"0", "1", "2"}) {
		t.Errorf("the items %v were swept", swept)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.scan(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a scan after the end of its context: %v", err)
	}
}

// TestChangedForbids: a stream that another program made gets this package's settings, also those that must be off.
func TestChangedForbids(t *testing.T) {
	t.Parallel()
	next := changed(jetstream.StreamConfig{AllowRollup: true, AllowDirect: true}, jetstream.StreamConfig{AllowMsgTTL: true})
	if next.AllowRollup || next.AllowDirect || !next.AllowMsgTTL {
		t.Errorf("%+v", next)
	}
}
