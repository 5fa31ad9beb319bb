package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/queue"
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
	a.auditor, err = jetstream.New(nc, jetstream.WithDefaultTimeout(patience))
	must(t, err)
	coordinator := connect(t, a.server, "coordinator")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	a.board, err = queue.OpenBoard(t.Context(), coordinator, nil)
	must(t, err)
	for _, key := range []string{"campaign.1", "status.1", "worker.1", "coordinator.a", "leader.coordinator", "cluster"} {
		must(t, a.board.Put(t.Context(), key, []byte("as it was")))
	}
	t.Cleanup(leading(a.board, func(context.Context, []byte) []byte { return []byte("an answer") }))
	a.work, err = queue.Open(t.Context(), coordinator, queue.Config{Campaign: "1"})
	must(t, err)
	must(t, a.work.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "3"}}))
	worker := attach(t, connect(t, a.server, "worker"), queue.Config{Campaign: "1"})
	must(t, lease(t, worker).Ack(t.Context()))
	must(t, a.work.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	must(t, a.work.PublishResult(t.Context(), "0", 0, []byte("done")))
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
	"worker": {"$KV.DDIFF_BOARD.worker.", "ddiff.work.", "ddiff.result."},
}

// targets are subjects that an attacker wants a message to reach.
var targets = []string{
	"$KV.DDIFF_BOARD.campaign.1", "$KV.DDIFF_BOARD.status.1", "$KV.DDIFF_BOARD.worker.1", "$KV.DDIFF_BOARD.cluster",
	"$KV.DDIFF_BOARD.leader.coordinator", "$KV.DDIFF_BOARD.coordinator.a",
	"$KV.DDIFF_BOARD.new",
	"ddiff.work.1.c", "ddiff.result.1",
	"$JS.API.STREAM.PURGE.DDIFF_RESULT", "$JS.API.STREAM.DELETE.DDIFF_WORK", "$JS.API.CONSUMER.DELETE.DDIFF_WORK.ddiff-1",
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
	for _, stream := range []string{"DDIFF_WORK", "DDIFF_RESULT", "KV_DDIFF_BOARD"} {
		s := strings.Replace(pattern, "*", stream, 1)
		s = strings.ReplaceAll(s, "*", "ddiff-1")
		for _, end := range []string{"x", "x.$KV.DDIFF_BOARD.worker.1", "x.$KV.DDIFF_BOARD.cluster", "cluster"} {
			all = append(all, strings.Replace(s, ">", end, 1))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestAttackAllSubjects publishes to every subject that the server knows, with the credentials of workers, and lets the answers go to the subjects of the cluster.
func TestAttackAllSubjects(t *testing.T) {
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

// TestAttackAnswers sends the requests that a role may send, with a reply subject that it may not publish to.
func TestAttackAnswers(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	board := "$JS.API.STREAM.MSG.GET.KV_DDIFF_BOARD"
	requests := map[string]map[string]string{
		"worker": {
			"$JS.API.INFO": "", board: `{"last_by_subj":"$KV.DDIFF_BOARD.worker.1"}`, "$JS.API.STREAM.INFO.DDIFF_WORK": "",
			"$JS.API.CONSUMER.INFO.DDIFF_WORK.ddiff-1": "", "$JS.API.CONSUMER.MSG.NEXT.DDIFF_WORK.ddiff-1": `{"batch":1,"expires":1000000000}`,
			"$JS.ACK.DDIFF_WORK.ddiff-1.1.1.1.1.1": "+WPI", "ddiff.result.1": "a result", "$KV.DDIFF_BOARD.worker.2": "a beat",
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

// positions has the state of every consumer of every stream.
func (a *attacked) positions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	streams := a.auditor.StreamNames(t.Context())
	for name := range streams.Name() {
		stream, err := a.auditor.Stream(t.Context(), name)
		must(t, err)
		consumers := stream.ListConsumers(t.Context())
		for c := range consumers.Info() {
			all[name+" "+c.Name] = fmt.Sprintf("delivered %d, acknowledged %d, pending %d, leased %d, waiting %d",
				c.Delivered.Stream, c.AckFloor.Stream, c.NumPending, c.NumAckPending, c.NumWaiting)
		}
		must(t, consumers.Err())
	}
	must(t, streams.Err())
	return all
}

// exactSubscriptions lists the subjects without wildcards to which the account of the streams has subscriptions. Only to them
// does the server deliver the messages of a push consumer.
func (a *attacked) exactSubscriptions(t *testing.T) []string {
	t.Helper()
	listed, err := a.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: 100_000, Account: "DDIFF"})
	must(t, err)
	var all []string
	for _, s := range listed.Subs {
		if !strings.ContainsAny(s.Subject, "*>") {
			all = append(all, s.Subject)
		}
	}
	for _, want := range []string{"$JS.API.CONSUMER.MSG.NEXT.DDIFF_WORK.ddiff-1", "$JS.API.CONSUMER.RESET.DDIFF_WORK.ddiff-1"} {
		if !slices.Contains(all, want) {
			t.Fatalf("the account of the streams has no subscription to %s, only to %q", want, all)
		}
	}
	return all
}

// createPush asks for a consumer of a stream that pushes the messages of a subject to another subject, and ends at their
// subscriptions, under each subject that creates consumers.
func createPush(t *testing.T, nc *nats.Conn, stream, name, filter, deliver string) {
	t.Helper()
	for i, subject := range []string{"CREATE." + stream, "CREATE." + stream + ".%s", "CREATE." + stream + ".%s." + filter, "DURABLE.CREATE." + stream + ".%s"} {
		named := fmt.Sprintf("%s-%d", name, i)
		config := map[string]any{
			"name": named, "deliver_subject": deliver, "ack_policy": "explicit", "ack_wait": time.Minute, "mem_storage": true,
			"deliver_policy": "all", "inactive_threshold": time.Minute,
		}
		if strings.HasPrefix(subject, "DURABLE") {
			config["durable_name"] = named
		}
		if filter != "" {
			config["filter_subject"] = filter
		}
		body, err := json.Marshal(map[string]any{"stream_name": stream, "config": config})
		must(t, err)
		must(t, nc.PublishRequest("$JS.API.CONSUMER."+strings.Replace(subject, "%s", named, 1), nc.NewInbox(), body))
	}
}

// TestAttackConsumers asks for consumers that deliver a record of the attacker to each subject to which the account
// of the streams subscribes, among them the requests for the items of a campaign and for another position of its consumer. The server
// does not check such a deliver subject. So no role but the coordinator may create consumers.
func TestAttackConsumers(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	exact := append(a.exactSubscriptions(t), targets...)
	for role, own := range ownSubjects {
		filter := own[0] + "forged"
		nc := connect(t, a.server, role)
		_, err := nc.Request(filter, []byte(`{"seq":9007199254740991,"batch":1,"expires":60000000000}`), patience)
		must(t, err)
		before, positions := a.contents(t), a.positions(t)
		for i, target := range exact {
			name := fmt.Sprintf("%s-%d", role, i)
			createPush(t, nc, "KV_DDIFF_BOARD", name, filter, target)
			for _, stream := range []string{"DDIFF_WORK", "DDIFF_RESULT", "KV_DDIFF_BOARD"} {
				createPush(t, nc, stream, name+"-"+stream, "", target)
			}
			must(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.KV_DDIFF_BOARD."+name, target, []byte(`{"batch":1}`)))
		}
		must(t, nc.FlushTimeout(patience))
		if diff := cmp.Diff(positions, a.positions(t)); diff != "" {
			t.Errorf("a %s changed consumers:\n%s", role, diff)
		}
		a.wantOnly(t, before, role, own...)
	}
	// With the permission, as an auditor, the attack moves the campaign's consumer: the check above sees it.
	before := a.positions(t)
	createPush(t, a.auditor.Conn(), "KV_DDIFF_BOARD", "auditor", ownSubjects["worker"][0]+"forged", "$JS.API.CONSUMER.MSG.NEXT.DDIFF_WORK.ddiff-1")
	const campaign = "DDIFF_WORK ddiff-1"
	waitFor(t, "the effect of the attack", func() bool { return a.positions(t)[campaign] != before[campaign] })
}

// TestAttackStreams asks for streams and settings of streams that copy messages to other subjects.
func TestAttackStreams(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	for role, own := range ownSubjects {
		before, nc := a.contents(t), connect(t, a.server, role)
		for _, target := range append(a.exactSubscriptions(t), targets...) {
			for i, config := range []map[string]any{
				{"subjects": []string{own[0] + "forged"}, "republish": map[string]any{"src": ">", "dest": target}},
				{"mirror": map[string]any{"name": "KV_DDIFF_BOARD", "external": map[string]any{"api": "$JS.API", "deliver": target}}},
				{"sources": []any{map[string]any{"name": "KV_DDIFF_BOARD", "subject_transforms": []any{map[string]any{"src": ">", "dest": target}}}}},
				{"subjects": []string{"other"}, "subject_transform": map[string]any{"src": "other", "dest": target}},
			} {
				for _, name := range []string{"OTHER", "KV_DDIFF_BOARD", "DDIFF_WORK"} {
					config["name"] = name
					body, err := json.Marshal(config)
					must(t, err)
					for _, act := range []string{"CREATE", "UPDATE", "RESTORE"} {
						if act == "RESTORE" {
							body, err = json.Marshal(map[string]any{"config": config})
							must(t, err)
						}
						must(t, nc.PublishRequest(fmt.Sprintf("$JS.API.STREAM.%s.%s", act, name), []string{nc.NewInbox(), target}[i%2], body))
					}
				}
			}
		}
		must(t, nc.FlushTimeout(patience))
		a.wantOnly(t, before, role, own...)
	}
}

// TestAttackHeaders publishes own records and messages with headers that make the server act on others, or on the message itself.
func TestAttackHeaders(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	headers := []nats.Header{
		{"Nats-Rollup": {"all"}}, {"Nats-Rollup": {"sub"}}, {"Nats-Request-Info": {`{"acc":"DDIFF","user":"coordinator"}`}},
		{"KV-Operation": {"PURGE"}, "Nats-Rollup": {"all"}}, {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
		{"Nats-TTL": {"1s"}}, {"Nats-TTL": {"never"}}, {"Nats-Marker-Reason": {"Purge"}}, {"Nats-Incr": {"+1"}}, {"Nats-Expected-Last-Sequence": {"0"}},
	}
	for _, stream := range []string{"DDIFF_WORK", "DDIFF_RESULT", "KV_DDIFF_BOARD"} {
		headers = append(headers, nats.Header{"Nats-Expected-Stream": {stream}}, nats.Header{"Nats-Stream-Source": {stream + " 1 > > >"}, "Nats-Sequence": {"1"}})
	}
	for _, target := range targets {
		headers = append(headers, nats.Header{"Nats-Trace-Dest": {target}},
			nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {target}},
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
		after := a.contents(t)
		for key, message := range before {
			if after[key] != message && !strings.Contains(message, own[0]) { // a record of its own it may replace
				t.Errorf("a %s replaced %s, %q, by %q", role, key, message, after[key])
			}
		}
	}
}

// TestAttackMessageIDs publishes messages under the ids of others, as the credentials of a worker permit, while queue groups of the
// attacker read all subjects of workers. The server takes the true messages for duplicates; each is stored nevertheless.
func TestAttackMessageIDs(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	nc := connect(t, a.server, "worker")
	for _, subject := range []string{"_INBOX_worker.>", "ddiff.board.>"} {
		_, err := nc.QueueSubscribeSync(subject, "thieves")
		must(t, err)
	}
	info, err := nc.Request("$JS.API.CONSUMER.INFO.DDIFF_WORK.ddiff-1", nil, patience)
	must(t, err)
	var consumer jetstream.ConsumerInfo
	must(t, json.Unmarshal(info.Data, &consumer))
	forge := func(subject, id string) {
		t.Helper()
		id = "1/" + consumer.Config.Metadata["ddiff-epoch"] + "/0/" + id
		answer, err := nc.RequestMsg(&nats.Msg{Subject: subject, Header: nats.Header{"Nats-Msg-Id": {id}, "Ddiff-Id": {"forged"}}, Data: []byte("{}")}, patience)
		must(t, err)
		if !strings.Contains(string(answer.Data), `"seq":`) {
			t.Fatalf("%s", answer.Data)
		}
	}
	worker := attach(t, connect(t, a.server, "worker"), queue.Config{Campaign: "1"})
	first, second := lease(t, worker), lease(t, worker)
	forge("ddiff.result.1", "1")
	must(t, first.PublishResult(t.Context(), []byte("true")))
	must(t, first.Ack(t.Context()))
	if got := results(t, a.work, 3); got["1"] != "true" {
		t.Errorf("results %v", got)
	}
	forge("ddiff.work.1.c", "2/release-1")
	must(t, second.Release(t.Context()))
	for second = lease(t, worker); second.ID() != "2"; second = lease(t, worker) {
		must(t, second.Ack(t.Context()))
	}
}

// TestAttackSubscriptions subscribes to what others send, alone and in a queue group.
func TestAttackSubscriptions(t *testing.T) {
	t.Parallel()
	a := newAttacked(t)
	other := map[string][]string{
		"worker":      {"_INBOX_coordinator.>", "ddiff.work.>", "ddiff.result.>", "ddiff.request"},
		"coordinator": {"_INBOX_worker.>"},
	}
	for role, subjects := range other {
		for _, subject := range append(subjects, ">", "_INBOX.>", "$KV.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.ADVISORY.>", "$JS.EVENT.METRIC.>", "$SYS.>", "$SRV.>") {
			for _, group := range []string{"", "thieves"} {
				nc := connect(t, a.server, role)
				_, err := nc.QueueSubscribeSync(subject, group)
				must(t, err)
				must(t, nc.FlushTimeout(patience)) // the server's refusal comes before its answer
				if err := nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("a %s subscribes to %s in group %q: %v", role, subject, group, err)
				}
			}
		}
	}
}

// TestRolesAllowCampaign runs a campaign with the documented permissions.
func TestRolesAllowCampaign(t *testing.T) {
	t.Parallel()
	s := serveRoles(t)
	coordinator, worker := connect(t, s, "coordinator"), connect(t, s, "worker")
	_, err := queue.OpenBoard(t.Context(), worker, nil)
	mustBe(t, err, queue.ErrNotReady)
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{MaxResults: 100}))

	// A standby submits.
	clerk := openBoard(t, connect(t, s, "coordinator"))
	revision, err := clerk.Create(t.Context(), "campaign.1", []byte("submitted"))
	must(t, err)
	_, err = clerk.Update(t.Context(), "campaign.1", []byte("changed"), revision)
	must(t, err)

	// The coordinator leads and opens the campaign.
	election, err := queue.NewElection(t.Context(), coordinator, queue.ElectionConfig{Name: "a", TTL: time.Second})
	must(t, err)
	must(t, election.Run(t.Context(), func(context.Context) error { return nil }))
	board := openBoard(t, coordinator)
	must(t, board.Put(t.Context(), "status.1", []byte("running")))
	defer leading(board, func(_ context.Context, request []byte) []byte { return request })()
	for _, asking := range []*queue.Board{clerk, board} {
		if answer, err := asking.Request(t.Context(), []byte("question")); err != nil || string(answer) != "question" {
			t.Fatalf("answer %q, %v", answer, err)
		}
	}
	q := openOn(t, coordinator, queue.Config{Campaign: "1", AckWait: shortWait, MaxAttempts: 1})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}, {Class: "c", ID: "3"}, {Class: "c", ID: "4"}}))
	must(t, q.Pause(t.Context()))
	must(t, q.Resume(t.Context()))
	defer sweep(t, coordinator, time.Millisecond, func() ([]byte, error) { return []byte("dead"), nil })()

	// The worker settles items.
	mine := openBoard(t, worker)
	for change, err := range mine.Watch(t.Context(), "campaign.") {
		must(t, err)
		if change.Ready {
			break
		}
		if string(change.Data) != "changed" {
			t.Fatalf("record %s is %q", change.Key, change.Data)
		}
	}
	must(t, mine.Put(t.Context(), "worker.w-1", []byte("beat")))
	must(t, mine.Delete(t.Context(), "worker.w-1"))
	w := attach(t, worker, queue.Config{Campaign: "1"})
	l := lease(t, w)
	must(t, queue.Extend(t.Context(), l))
	must(t, l.PublishResult(t.Context(), []byte("done")))
	must(t, l.Ack(t.Context()))
	must(t, lease(t, w).Ack(t.Context()))
	must(t, lease(t, w).Retry(t.Context(), 0))
	must(t, lease(t, w).Release(t.Context()))
	for size := uint64(1); size > 0; size, err = q.Size(t.Context()) { // the other two exhaust their attempts
		must(t, err)
		_, err = w.Lease(t.Context(), 1, shortWait)
		must(t, err)
	}

	// A standby reads.
	if got := results(t, q, 3); got["1"] != "done" || got["3"] != "dead" {
		t.Fatalf("results %v", got)
	}
	keys, err := clerk.Keys(t.Context(), "")
	must(t, err)
	if len(keys) != 2 {
		t.Fatalf("keys %v, want those of the campaign and its status", keys)
	}
	must(t, q.Remove(t.Context()))
	wantExists(t, q, false)
}

// TestPublishWithoutPermission: a batch that the server does not permit is refused with the subject and the remedy, not with a server that does not answer.
func TestPublishWithoutPermission(t *testing.T) {
	t.Parallel()
	o := jetStream(t)
	o.Users = []*server.User{
		{Username: "coordinator", Password: passwords["coordinator"]},
		{Username: "worker", Password: passwords["worker"], Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"ddiff.work.>"}}}},
	}
	s := serve(t, o)
	must(t, queue.Setup(t.Context(), connect(t, s, "coordinator"), queue.SetupConfig{}))
	q, err := queue.Inspect(connect(t, s, "worker"), queue.Config{Campaign: "1"})
	must(t, err)
	err = q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}})
	mustBe(t, err, queue.ErrAccess)
	for _, word := range []string{"ddiff.work.1.c", "nats-accounts.conf"} {
		if strings.Count(err.Error(), word) != 1 {
			t.Errorf("%v does not have %s once", err, word)
		}
	}
}

// TestRolesDenyOtherRequests tries requests that a role must not make: calls of this package, and requests of the coordinator.
// TestAttackAllSubjects has the others of workers, TestAttackSubscriptions the subscriptions.
func TestRolesDenyOtherRequests(t *testing.T) {
	t.Parallel()
	s := serveRoles(t)
	coordinator := connect(t, s, "coordinator")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	board := openBoard(t, coordinator)
	for _, key := range []string{"campaign.1", "status.1", "worker.1", "cluster"} {
		must(t, board.Put(t.Context(), key, []byte("as it was")))
	}
	q := openOn(t, coordinator, queue.Config{Campaign: "1"})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	must(t, q.PublishResult(t.Context(), "0", 0, nil))

	write := func(key string) func(context.Context, *nats.Conn) error {
		return func(ctx context.Context, nc *nats.Conn) error {
			b, err := queue.OpenBoard(ctx, nc, nil)
			if err != nil {
				return err
			}
			return b.Put(ctx, key, []byte("changed"))
		}
	}
	request := func(subject string) func(context.Context, *nats.Conn) error {
		return func(ctx context.Context, nc *nats.Conn) error {
			_, err := nc.RequestWithContext(ctx, "$JS.API."+subject, nil)
			return err
		}
	}
	tries := []struct {
		role, what string
		try        func(context.Context, *nats.Conn) error
	}{
		{"worker", "purge the results", request("STREAM.PURGE.DDIFF_RESULT")},
		{"worker", "change a campaign", write("campaign.1")},
		{"worker", "set up", func(ctx context.Context, nc *nats.Conn) error {
			return queue.Setup(ctx, nc, queue.SetupConfig{MaxResults: 1})
		}},
		{"worker", "lead", func(ctx context.Context, nc *nats.Conn) error {
			e, err := queue.NewElection(ctx, nc, queue.ElectionConfig{TTL: time.Second})
			if err != nil {
				return err
			}
			return e.Run(ctx, func(context.Context) error { return nil })
		}},
		{"worker", "ask the leader", func(ctx context.Context, nc *nats.Conn) error {
			b, err := queue.OpenBoard(ctx, nc, nil)
			if err != nil {
				return err
			}
			_, err = b.Request(ctx, nil)
			return err
		}},
		{"coordinator", "delete the work", request("STREAM.DELETE.DDIFF_WORK")},
		{"coordinator", "make another stream", request("STREAM.CREATE.OTHER")},
	}
	var all sync.WaitGroup // more than the limit of parallel tests: the cases only wait
	for _, c := range tries {
		nc := connect(t, s, c.role)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			defer cancel()
			err := c.try(ctx, nc)
			// A call of the client may only time out: the server reports the violation asynchronously.
			if !errors.Is(err, queue.ErrAccess) && !errors.Is(nc.LastError(), nats.ErrPermissionViolation) {
				t.Errorf("%s tries to %s: error %v, server error %v; want a permission violation", c.role, c.what, err, nc.LastError())
			}
		})
	}
	all.Wait()
	wantDepth(t, q, 2, 0)
	if last, err := q.LastResult(t.Context()); err != nil || last == 0 {
		t.Fatalf("the last result is number %d, %v", last, err)
	}
	for _, key := range []string{"campaign.1", "status.1", "worker.1", "cluster"} {
		if data, _, err := board.Get(t.Context(), key); err != nil || string(data) != "as it was" {
			t.Errorf("record %s is %q, %v", key, data, err)
		}
	}
}
