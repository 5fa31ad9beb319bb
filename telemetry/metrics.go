package telemetry

import "go.opentelemetry.io/otel/attribute"

// Attribute keys of the metrics. docs/telemetry.md lists their values.
const (
	// TaskKey is the restoration task of an item.
	TaskKey = attribute.Key("task")
	// OutcomeKey is the outcome of an item.
	OutcomeKey = attribute.Key("outcome")
	// StageKey is the stage of an item, one of the Stage constants.
	StageKey = attribute.Key("stage")
	// PassKey is the direction of an evaluation of the score network.
	PassKey = attribute.Key("pass")
	// OperationKey is a method of the store.
	OperationKey = attribute.Key("operation")
	// ErrorKey is the class of an error.
	ErrorKey = attribute.Key("error.type")
	// DirectionKey is the direction of a transfer.
	DirectionKey = attribute.Key("direction")
	// CampaignKey is the id of a campaign.
	CampaignKey = attribute.Key("campaign")
	// OwnerKey is the owner of a campaign.
	OwnerKey = attribute.Key("owner")
)

// Metrics lists all metrics of ddiff. Processes record no others, but the endpoint for Prometheus has go_* and process_*.
func Metrics() []Metric {
	return []Metric{
		{"ddiff.items", KindCounter, "{item}", []attribute.Key{TaskKey, OutcomeKey}, FromWorker,
			"Outcomes that this worker published; a repetition within two minutes counts once.", nil},
		{"ddiff.item.duration", KindHistogram, "s", []attribute.Key{TaskKey, OutcomeKey}, FromWorker,
			"Time from the lease of an item to its published outcome.", longSeconds()},
		{"ddiff.stage.duration", KindHistogram, "s", []attribute.Key{StageKey}, FromWorker,
			"Time of one stage of an item; restore and its steps are stages of a batch.", longSeconds()},
		{"ddiff.steps", KindCounter, "{step}", nil, FromWorker, "Solver steps, one for each image and step.", nil},
		{"ddiff.step.duration", KindHistogram, "s", nil, FromWorker, "Time of one solver step of a batch.", shortSeconds()},
		{"ddiff.solver.time", KindCounter, "s", []attribute.Key{CampaignKey, OwnerKey}, FromWorker,
			"Time in the solver's calls of the runtime. Its rate, added up, is the share of time in which the device solves.", nil},
		{"ddiff.network.evaluations", KindCounter, "{evaluation}", []attribute.Key{PassKey}, FromWorker,
			"Evaluations of the score network, one for each image; a backward pass counts as one.", nil},
		{"ddiff.batch.fill", KindHistogram, "1", nil, FromWorker, "Items of a batch divided by its capacity.",
			[]float64{0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1}},
		{"ddiff.redeliveries", KindCounter, "{message}", nil, FromWorker,
			"Leases of items with an earlier attempt that counts: it failed, or its lease expired.", nil},
		{"ddiff.retries", KindCounter, "{item}", nil, FromWorker,
			"Failed attempts after which an item returned to the queue. Redeliveries without retries are expired leases.", nil},
		{"ddiff.faults", KindCounter, "{item}", nil, FromWorker, "Items released after a failure of the worker's environment.", nil},
		{"ddiff.suspensions", KindCounter, "{suspension}", nil, FromWorker,
			"Suspensions of a worker until its environment passes a test.", nil},
		{"ddiff.leases", KindGauge, "{item}", nil, FromWorker, "Items that this process holds.", nil},

		{"ddiff.store.requests", KindCounter, "{request}", []attribute.Key{OperationKey, ErrorKey}, FromProcess,
			"Calls of the result store, each with its retries.", nil},
		{"ddiff.store.duration", KindHistogram, "s", []attribute.Key{OperationKey}, FromProcess,
			"Time of one call of the result store, with its retries.", shortSeconds()},
		{"ddiff.store.io", KindCounter, "By", []attribute.Key{DirectionKey}, FromProcess,
			"Bytes of objects that calls of the result store read or wrote.", nil},
		{"ddiff.dataset.io", KindCounter, "By", nil, FromProcess, "Bytes of dataset files that were read, also from the cache.", nil},

		{"ddiff.leader", KindGauge, "{leader}", nil, FromCoordinator, "1 in the leading coordinator, else 0.", nil},
		{"ddiff.store.available", KindGauge, "{store}", nil, FromCoordinator, "1 if this coordinator can use the store, else 0.", nil},

		{"ddiff.queue.lag", KindGauge, "{item}", []attribute.Key{"pool"}, FromLeader,
			"Items that need workers and that those of a pool can take: pending and in flight, without paused campaigns; 1 for each campaign that waits for a worker, or whose queue a new leader has not yet read; 0 if no worker is needed. An item that several pools can take counts in each.", nil},
		{"ddiff.queue.pending", KindGauge, "{item}", []attribute.Key{CampaignKey}, FromLeader, "Items in the queue that were never leased.", nil},
		{"ddiff.queue.in_flight", KindGauge, "{item}", []attribute.Key{CampaignKey}, FromLeader,
			"Items that are leased or wait for their next attempt.", nil},
		{"ddiff.queue.published", KindCounter, "{item}", nil, FromLeader,
			"Items that the coordinator published, also again after a loss of the queue.", nil},
		{"ddiff.campaigns", KindGauge, "{campaign}", []attribute.Key{"phase"}, FromLeader, "Campaigns.", nil},
		{"ddiff.campaign.blocked", KindGauge, "{campaign}", []attribute.Key{CampaignKey, "phase"}, FromLeader,
			"1 for a campaign that waits for a person: paused after a failure of the workers' environment, or rejected.", nil},
		{"ddiff.campaign.items", KindGauge, "{item}", []attribute.Key{CampaignKey, "state"}, FromLeader,
			"Items of a campaign in the ledger, each once.", nil},
		{"ddiff.campaign.rate", KindGauge, "{item}/s", []attribute.Key{CampaignKey}, FromLeader,
			"Items per second that reached a final state in the last two minutes.", nil},
		{"ddiff.campaign.slack", KindGauge, "s", []attribute.Key{CampaignKey}, FromLeader,
			"Time from the expected end of a campaign to its deadline; negative: it will be late.", nil},
		{"ddiff.campaign.device_time", KindGauge, "s", []attribute.Key{CampaignKey, "pool"}, FromLeader,
			"Solver time of the outcomes of a campaign, by the pool of the worker.", nil},
		{"ddiff.campaign.cost", KindGauge, "{currency}", []attribute.Key{CampaignKey, "pool"}, FromLeader,
			"Cost of that time at the prices of the coordinator; 0 for a pool without one.", nil},
		{"ddiff.campaign.limit", KindGauge, "1", []attribute.Key{CampaignKey}, FromLeader,
			"Largest used share of a limit of a campaign: device-seconds or cost of its budget, or the cap of its owner; 1: the campaign waits. Absent without a limit, and before any use.", nil},
		{"ddiff.campaign.idle", KindGauge, "s", []attribute.Key{CampaignKey}, FromLeader,
			"Time since the last outcome of a campaign, its start, the end of a pause, or a change of the leader; 0 while it is paused.", nil},
		{"ddiff.ledger.lag", KindGauge, "{outcome}", []attribute.Key{CampaignKey}, FromLeader,
			"Outcomes in the result stream that are not yet in the ledger.", nil},
		{"ddiff.ledger.items", KindCounter, "{item}", []attribute.Key{OutcomeKey}, FromLeader,
			"Items that reached their final state in the ledger by an outcome, each once per leader.", nil},
		{"ddiff.stream.fill", KindGauge, "1", []attribute.Key{"stream"}, FromLeader, "Used share of a stream's limit.", nil},
		{"ddiff.workers", KindGauge, "{worker}", []attribute.Key{"pool", "state"}, FromLeader, "Live workers.", nil},
	}
}

// longSeconds are bounds for items and their stages: from a tenth of a second to two hours.
func longSeconds() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600, 7200}
}

// shortSeconds are bounds for steps and for calls of the store: from a millisecond to a minute.
func shortSeconds() []float64 {
	return []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60}
}
