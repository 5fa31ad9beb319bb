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
	_, err = w.wait(ctx, id, w.plan.items())
	return errors.Join(append(problems, err)...)
}
