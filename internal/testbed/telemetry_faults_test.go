package testbed

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// settle waits until a share of the campaign's items has results.
func (w *watched) settle(ctx context.Context, id string, share float64) error {
	want := int(share * float64(w.plan.items()))
	return poll(ctx, 3*time.Minute, fmt.Sprintf("%d results of %s", want, id), func() (bool, error) {
		return w.c.Settled(id) >= want, nil
	})
}

// sampleFaults runs the campaign with a damaged image on workers that sample no first attempt. One of them is killed. The traces of failed
// items and of second attempts arrive, and those of other items do not.
func (w *watched) sampleFaults(ctx context.Context) (err error) {
	defer caught(&err)
	for _, p := range w.c.Workers {
		try(p.Stop(time.Minute))
		check(w.begin(ctx, p, "worker is ready", "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"))
	}
	sound := w.plan.items()
	// The coordinator reads the header of an image: this one fails on a worker.
	whole := w.plan.images["crop-0000.png"]
	w.plan.images["cut-off.png"] = whole[:len(whole)*2/3]
	id, err := w.submit(ctx, "faults")
	delete(w.plan.images, "cut-off.png")
	check(err)
	check(w.settle(ctx, id, 0.3))
	w.c.Workers[0].Kill()
	check(w.begin(ctx, w.c.Workers[0], "worker is ready"))
	try(w.wait(ctx, id, sound, len(tasks)))
	results := try(Results(w.c.Results(id)))
	var arrived traces
	var failed, again, first int
	second := 0
	for _, r := range results {
		if r.Attempt > 1 {
			second++
		}
	}
	err = poll(ctx, 20*time.Second, "the spans of failed items", func() (bool, error) {
		spans, err := w.collector.received()
		arrived = newTraces(spans)
		failed, again, first = 0, 0, 0
		for _, s := range arrived.roots(id) {
			switch {
			case s.Status.Code == statusError:
				failed++
			case s.Attributes[attributeAttempt] != "1":
				again++
			default:
				first++
			}
		}
		return failed >= len(tasks) && again >= second, err
	})
	say("with a ratio of 0: traces of %d failed attempts, %d second attempts and %d other attempts arrived; %d items were restored in a second attempt, %d in the first",
		failed, again, first, second, len(results)-second)
	var problems []error
	for item, r := range results {
		if _, ok := arrived[r.TraceID]; r.Attempt > 1 && !ok {
			problems = append(problems, fmt.Errorf("item %s was restored in attempt %d: its trace did not arrive", item, r.Attempt))
		}
	}
	if second == 0 {
		problems = append(problems, errors.New("the killed worker held no item"))
	}
	if first > 0 {
		problems = append(problems, fmt.Errorf("%d traces of first attempts without an error arrived", first))
	}
	return errors.Join(append(problems, err)...)
}

// fireAlerts stops all workers during a campaign, and then the coordinator: the alerts fire, and end after a restart.
func (w *watched) fireAlerts(ctx context.Context) (err error) {
	defer caught(&err)
	id := try(w.submit(ctx, "alerts"))
	check(w.settle(ctx, id, 0.1))
	for _, p := range w.c.Workers {
		check(p.Signal(syscall.SIGKILL))
	}
	var problems []error
	expect := func(alert string, want bool) {
		begin := time.Now()
		err := poll(ctx, 2*time.Minute, alert, func() (bool, error) {
			fires, err := w.prometheus.firing(ctx, alert)
			return fires == want, err
		})
		say("%s: firing=%v after %.0f s", alert, want, time.Since(begin).Seconds())
		problems = append(problems, err)
	}
	expect("DdiffTargetDown", true)
	expect("DdiffNoWorkers", true)
	expect("DdiffCampaignStuck", true)
	coordinator := w.c.Coordinators[0]
	coordinator.Kill()
	expect("DdiffNoLeader", true)
	check(w.begin(ctx, coordinator, "coordinator is ready"))
	for _, p := range w.c.Workers {
		p.Kill() // waits for the end
		check(w.begin(ctx, p, "worker is ready"))
	}
	for _, alert := range []string{"DdiffNoLeader", "DdiffNoWorkers", "DdiffCampaignStuck", "DdiffTargetDown"} {
		expect(alert, false)
	}
	_, err = w.wait(ctx, id, w.plan.items(), 0)
	return errors.Join(append(problems, err)...)
}
