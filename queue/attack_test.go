package queue_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/queue"
)

// attacked is a cluster with the documented accounts and one message of each kind.
type attacked struct {
	server  *server.Server
	auditor jetstream.JetStream // with all permissions in the account of the streams
	work    *queue.Queue
	board   *queue.Board
}

// newAttacked starts the cluster.
func newAttacked(t *testing.T) *attacked {
	t.Helper()
	o := roleOptions(t)
	for _, account := range o.Accounts {
		if account.Name == "DDIFF" {
			o.Users = append(o.Users, &server.User{Username: "auditor", Password: "auditor-secret", Account: account})
		}
	}
	a := &attacked{server: serve(t, o)}
	nc, err := nats.Connect(strings.Replace(a.server.ClientURL(), "://", "://auditor:auditor-secret@", 1))
	must(t, err)
	t.Cleanup(nc.Close)
	a.auditor, err = jetstream.New(nc)
	must(t, err)
	coordinator := connect(t, a.server, "coordinator")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	a.board, err = queue.OpenBoard(t.Context(), coordinator)
	must(t, err)
	for _, key := range []string{"campaign.1", "status.1", "worker.1", "coordinator.a", "leader.coordinator", "cluster", "start.1", "campaign._request-1"} {
		must(t, a.board.Put(t.Context(), key, []byte("as it was")))
	}
	a.work, err = queue.Open(t.Context(), coordinator, queue.Config{Campaign: "1"})
	must(t, err)
	must(t, a.work.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	must(t, a.work.PublishResult(t.Context(), "0", 0, []byte("done")))
	must(t, a.work.PublishDead(t.Context(), queue.DeadLetter{Dead: queue.Dead{ID: "3", Reason: "bad"}, Class: "c"}))
	return a
}

// contents has the configuration and the durable consumers of each stream, and its messages by stream and sequence number.
func (a *attacked) contents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	streams := a.auditor.ListStreams(t.Context())
	for info := range streams.Info() {
		name := info.Config.Name
		config, err := json.Marshal(info.Config)
		must(t, err)
		all[name+" config"] = string(config)
		stream, err := a.auditor.Stream(t.Context(), name)
		must(t, err)
		consumers := stream.ListConsumers(t.Context())
		for c := range consumers.Info() {
			if c.Config.Durable != "" {
				all[name+" consumer "+c.Name] = fmt.Sprint(c.PauseRemaining)
			}
		}
		must(t, consumers.Err())
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
			if msg, err := stream.GetMsg(t.Context(), seq); err == nil {
				all[fmt.Sprintf("%s %d", name, seq)] = msg.Subject + ": " + string(msg.Data)
			}
		}
	}
	must(t, streams.Err())
	return all
}

// wantOnly checks that nothing changed since before, except messages on subjects with one of the prefixes.
func (a *attacked) wantOnly(t *testing.T, before map[string]string, what string, prefixes ...string) {
	t.Helper()
	own := func(_, message string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(message, p) })
	}
	before, after := maps.Clone(before), a.contents(t)
	maps.DeleteFunc(before, own)
	maps.DeleteFunc(after, own)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("%s changed more than it may:\n%s", what, diff)
	}
}

// ownSubjects are the prefixes of the subjects that a role may publish to.
var ownSubjects = map[string][]string{
	"worker":  {"$KV.DDIFF_BOARD.worker.", "ddiff.work.", "ddiff.result.", "ddiff.dead."},
	"command": {"$KV.DDIFF_BOARD.campaign."},
}

// targets are subjects that an attacker wants a message to reach.
var targets = []string{
	"$KV.DDIFF_BOARD.campaign.1", "$KV.DDIFF_BOARD.status.1", "$KV.DDIFF_BOARD.worker.1", "$KV.DDIFF_BOARD.cluster",
	"$KV.DDIFF_BOARD.leader.coordinator", "$KV.DDIFF_BOARD.coordinator.a", "$KV.DDIFF_BOARD.start.1", "$KV.DDIFF_BOARD.campaign._request-1",
	"$KV.DDIFF_BOARD.new", "ddiff.hint.1",
	"ddiff.work.1.c", "ddiff.result.1", "ddiff.dead.1",
	"$JS.API.STREAM.PURGE.DDIFF_RESULT", "$JS.API.STREAM.DELETE.DDIFF_DEAD", "$JS.API.CONSUMER.DELETE.DDIFF_WORK.ddiff-1",
}

// serverSubjects lists the subjects of the JetStream API, and those that the server subscribes to in any account, with
// wildcards.
func (a *attacked) serverSubjects(t *testing.T) []string {
	t.Helper()
	all := []string{
		server.JSApiAccountInfo, server.JSApiStreamCreate, server.JSApiStreamUpdate, server.JSApiStreams, server.JSApiStreamList,
		server.JSApiStreamInfo, server.JSApiStreamDelete, server.JSApiStreamPurge, server.JSApiStreamSnapshot, server.JSApiStreamRestore,
		server.JSApiMsgDelete, server.JSApiMsgGet, server.JSDirectMsgGet, server.JSDirectGetLastBySubject, server.JSApiConsumerCreate,
		server.JSApiConsumerCreateEx, server.JSApiDurableCreate, server.JSApiConsumers, server.JSApiConsumerList,
		server.JSApiConsumerInfo, server.JSApiConsumerDelete, server.JSApiConsumerPause, server.JSApiConsumerUnpin,
		"$JS.API.CONSUMER.MSG.NEXT.*.*", "$JS.API.CONSUMER.RESET.*.*", server.JSApiStreamRemovePeer,
		server.JSApiStreamEvacuatePeer, server.JSApiStreamCancelMove, server.JSApiStreamLeaderStepDown,
		server.JSApiConsumerLeaderStepDown, server.JSApiConsumerRemovePeer, server.JSApiConsumerEvacuatePeer,
		server.JSApiLeaderStepDown, server.JSApiRemoveServer, server.JSApiEvacuateServer, server.JSApiMetaRescue,
		server.JSApiAccountPurge, server.JSApiServerStreamMove, server.JSApiServerStreamCancelMove,
		server.JSAdvisoryPrefix + ".>", server.JSMetricPrefix + ".>", "$JS.ACK.*.ddiff-1.1.1.1.1.1", "$JS.ACK._.x.*.ddiff-1.1.1.1.1.1",
		"$JS.FC.*.>", "$JSC.R.*", "$KV.DDIFF_BOARD.>", "_R_.>", "_INBOX_coordinator.>", "$SYS.REQ.>", "$SYS.ACCOUNT.DDIFF.>",
	}
	listed, err := a.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: 100_000})
	must(t, err)
	for _, s := range listed.Subs {
		all = append(all, s.Subject)
	}
	if len(listed.Subs) < 50 {
		t.Fatalf("the server lists only %d subscriptions", len(listed.Subs))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// literals replaces the wildcards of a subject by names of the cluster.
func literals(pattern string) []string {
	var all []string
	for _, stream := range []string{"DDIFF_WORK", "DDIFF_RESULT", "DDIFF_DEAD", "KV_DDIFF_BOARD", "DDIFF_ADVISORY"} {
		s := strings.Replace(pattern, "*", stream, 1)
		s = strings.ReplaceAll(s, "*", "ddiff-1")
		for _, end := range []string{"x", "x.$KV.DDIFF_BOARD.worker.1", "x.$KV.DDIFF_BOARD.cluster", "cluster"} {
			all = append(all, strings.Replace(s, ">", end, 1))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestRolesAgainstAllSubjects publishes to every subject that the server knows, with the credentials of workers and
// commands, and lets the answers go to the subjects of the cluster.
func TestRolesAgainstAllSubjects(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	subjects := a.serverSubjects(t)
	for role, own := range ownSubjects {
		before, nc, n := a.contents(t), connect(t, a.server, role), 0
		for _, pattern := range subjects {
			for _, subject := range literals(pattern) {
				for i, reply := range append([]string{""}, targets...) {
					bodies := []string{"", `{"seq":1}`, `{"batch":1,"expires":1000000}`, `{"last_by_subj":"$KV.DDIFF_BOARD.worker.1"}`, "+ACK", "+TERM"}
					msg := &nats.Msg{Subject: subject, Reply: reply, Data: []byte(bodies[(i+n)%len(bodies)])}
					must(t, nc.PublishMsg(msg))
					n++
				}
			}
		}
		must(t, nc.FlushTimeout(patience))
		t.Logf("%s: %d messages to %d subjects", role, n, len(subjects))
		a.wantOnly(t, before, role, own...)
	}
}

// TestRolesAnswersReachNoRecord sends the requests that a role may send, with a reply subject that it may not publish to.
func TestRolesAnswersReachNoRecord(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	board := "$JS.API.STREAM.MSG.GET.KV_DDIFF_BOARD"
	requests := map[string]map[string]string{
		"worker": {
			"$JS.API.INFO": "", board: `{"last_by_subj":"$KV.DDIFF_BOARD.worker.1"}`, "$JS.API.STREAM.INFO.DDIFF_WORK": "",
			"$JS.API.CONSUMER.INFO.DDIFF_WORK.ddiff-1": "", "$JS.API.CONSUMER.MSG.NEXT.DDIFF_WORK.ddiff-1": `{"batch":1,"expires":1000000000}`,
			"$JS.ACK.DDIFF_WORK.ddiff-1.1.1.1.1.1": "+WPI", "ddiff.result.1": "a result", "$KV.DDIFF_BOARD.worker.2": "a beat",
		},
		"command": {
			"$JS.API.INFO": "", board: `{"last_by_subj":"$KV.DDIFF_BOARD.campaign.1"}`, "$JS.API.CONSUMER.INFO.DDIFF_WORK.ddiff-1": "",
			"$JS.API.STREAM.MSG.GET.DDIFF_DEAD": `{"last_by_subj":"ddiff.dead.1"}`, "$KV.DDIFF_BOARD.campaign.2": "a campaign",
		},
	}
	for role, own := range ownSubjects {
		before, nc := a.contents(t), connect(t, a.server, role)
		for subject, body := range requests[role] {
			for _, target := range targets {
				must(t, nc.PublishRequest(subject, target, []byte(body)))
			}
		}
		must(t, nc.FlushTimeout(patience))
		a.wantOnly(t, before, role, own...)
	}
}

// TestRolesConsumersReachNoRecord creates consumers of the board that deliver a record of the attacker to other subjects. The
// server starts such a delivery only for a subscriber of exactly that subject, and the account of the streams has none.
func TestRolesConsumersReachNoRecord(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	subscribed, err := a.auditor.Conn().SubscribeSync("subscribed")
	must(t, err)
	must(t, a.auditor.Conn().Flush())
	for role, own := range ownSubjects {
		filter := own[0] + "forged"
		nc := connect(t, a.server, role)
		_, err := nc.Request(filter, []byte(`{"purge":true}`), patience)
		must(t, err)
		before := a.contents(t)
		create := func(name, deliver string) bool {
			body, err := json.Marshal(map[string]any{"stream_name": "KV_DDIFF_BOARD", "config": map[string]any{
				"name": name, "deliver_subject": deliver, "filter_subject": filter, "ack_policy": "none", "mem_storage": true,
				"deliver_policy": "all", "inactive_threshold": time.Minute,
			}})
			must(t, err)
			answer, err := nc.Request("$JS.API.CONSUMER.CREATE.KV_DDIFF_BOARD."+name+"."+filter, body, patience)
			must(t, err)
			return !strings.Contains(string(answer.Data), `"error"`)
		}
		for i, target := range targets {
			name := fmt.Sprintf("%s-%d", role, i)
			pushes := create(name, target)
			if !create(name+"-pull", "") {
				t.Fatal("no pull consumer")
			}
			must(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.KV_DDIFF_BOARD."+name+"-pull", target, []byte(`{"batch":1}`)))
			if !pushes {
				continue // the subject is in the board itself
			}
			consumer, err := a.auditor.PushConsumer(t.Context(), "KV_DDIFF_BOARD", name)
			must(t, err)
			if consumer.CachedInfo().PushBound {
				t.Errorf("a consumer of a %s delivers to %s", role, target)
			}
		}
		if !create(role+"-control", "subscribed") {
			t.Fatal("no push consumer")
		}
		if _, err := subscribed.NextMsg(patience); err != nil {
			t.Fatal(err)
		}
		a.wantOnly(t, before, role, own...)
	}
}

// TestRolesHeadersReachNoRecord publishes own records with headers that make the server act on other ones.
func TestRolesHeadersReachNoRecord(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	headers := []nats.Header{
		{"Nats-Rollup": {"all"}}, {"Nats-Rollup": {"sub"}}, {"Nats-Request-Info": {`{"acc":"DDIFF","user":"coordinator"}`}},
		{"KV-Operation": {"PURGE"}, "Nats-Rollup": {"all"}}, {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
	}
	for _, target := range targets {
		headers = append(headers, nats.Header{"Nats-Trace-Dest": {target}},
			nats.Header{"Nats-Schedule": {"@at " + time.Now().Format(time.RFC3339)}, "Nats-Schedule-Target": {target}})
	}
	for role, own := range ownSubjects {
		before, nc := a.contents(t), connect(t, a.server, role)
		for _, prefix := range own {
			for _, header := range headers {
				subject := prefix + "2"
				if prefix == "ddiff.work." {
					subject += ".c"
				}
				must(t, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: nc.NewInbox(), Header: header, Data: []byte("forged")}))
			}
		}
		must(t, nc.FlushTimeout(patience))
		a.wantOnly(t, before, role, own...)
	}
}

// TestBoardForbidsRollup opens the board of an earlier version, which allowed one message to replace all records.
func TestBoardForbidsRollup(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	info, err := a.auditor.Stream(t.Context(), "KV_DDIFF_BOARD")
	must(t, err)
	config := info.CachedInfo().Config
	config.AllowRollup = true
	_, err = a.auditor.UpdateStream(t.Context(), config)
	must(t, err)
	coordinator := connect(t, a.server, "coordinator")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	before := a.contents(t)
	worker := connect(t, a.server, "worker")
	_, err = worker.RequestMsg(&nats.Msg{Subject: "$KV.DDIFF_BOARD.worker.2", Header: nats.Header{"Nats-Rollup": {"all"}}}, patience)
	must(t, err)
	a.wantOnly(t, before, "worker", ownSubjects["worker"]...)
}
