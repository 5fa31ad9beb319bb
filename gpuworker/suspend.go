package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/retry"
)

// noteFailure counts a failure of an item in the circuit that it concerns.
func (w *Worker) noteFailure(t *task, err error) {
	key := ""
	if w.campaigns != nil && job.FromSource(err) {
		key = t.assigned.Campaign
	}
	opened := w.breaker.Fail(key, err, func() (*task, func()) {
		if key != "" {
			return t.withoutImages(), func() {}
		}
		t.assigned.unsettled.Add(1) // the engine stays open for the test
		return t.withoutImages(), t.assigned.settled
	})
	if guard.Environmental(err) {
		w.reportFault(t.ctx, key, t, err)
	}
	if !opened {
		return
	}
	w.cfg.Instruments.Suspensions.Add(t.ctx, 1)
	if key != "" {
		w.cfg.Logger.Error("suspended a campaign until its files can be read", "campaign", key, "failures", guard.FailuresToSuspend, "reason", err)
		w.campaigns.Suspend(key, w.cfg.ProbePause, err)
		return
	}
	w.cfg.Logger.Error("suspended leasing until the environment passes a test", "failures", guard.FailuresToSuspend, "reason", err)
}

// awaitEnvironment returns once the worker's environment works. It tests the environment of a suspended worker until it
// passes. An error ends the worker: the device is lost, or Config.Patience is over.
func (w *Worker) awaitEnvironment(ctx context.Context) error {
	for ctx.Err() == nil {
		c := w.breaker.Circuit("")
		if c == nil {
			return nil
		}
		w.awaitSettled(ctx)                            // the test must not run beside the solver
		_ = retry.Sleep(ctx, c.Due.Sub(w.cfg.Now()))   // the loop and the test check ctx
		err := w.test(ctx, c.Item, w.campaigns == nil) // files of one campaign suspend that campaign only
		if err == nil {
			w.cfg.Logger.Info("the environment has passed its test, leasing again")
			w.breaker.Passed(c)
			return nil
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the worker drains
		}
		if onnxruntime.Unusable(err) || errors.Is(err, onnxruntime.ErrDevice) { // with a batch that is known to be good
			return fmt.Errorf("test the device: %w", err)
		}
		if p := w.cfg.Patience; p > 0 && (!guard.Temporary(err) || w.cfg.Now().Sub(c.Since) >= p) {
			return fmt.Errorf("test the environment: %w", err)
		}
		w.reportFault(ctx, "", c.Item, err)
		w.cfg.Logger.Warn("the environment fails its test", "again", w.breaker.Failed(c, err), "reason", err)
	}
	return nil
}

// testCampaign tests the files of a suspended campaign. It ends the suspension, or continues it.
func (w *Worker) testCampaign(ctx context.Context, campaign string, c *guard.Circuit[*task]) {
	a := w.watchdog.Begin(ctx, "probe", w.cfg.Limits.Prepare)
	defer a.End()
	err := a.Wrap(w.testSources(a.Ctx, c.Item))
	if err == nil {
		w.cfg.Logger.Info("the files of a campaign can be read again", "campaign", campaign)
		w.breaker.Passed(c)
		return
	}
	w.reportFault(ctx, campaign, c.Item, err)
	w.campaigns.Suspend(campaign, w.breaker.Failed(c, err), err)
}

// reportFault reports an environment that has failed for Config.PauseAfter and needs a person. The coordinator pauses
// the campaign if no other worker has finished an item in this time.
func (w *Worker) reportFault(ctx context.Context, key string, t *task, err error) {
	if !w.breaker.ReportDue(key, err, w.cfg.PauseAfter) {
		return
	}
	data, failed := json.Marshal(record.Fault{
		Worker: w.cfg.Name, Reason: oneLine(err), Seconds: w.cfg.PauseAfter.Seconds(), At: w.cfg.Now().UTC(),
	})
	if failed == nil {
		failed = t.lease.PublishNotice(ctx, record.IDFault, data)
	}
	if failed != nil {
		w.cfg.Logger.Warn("could not report a failing environment", "reason", failed)
	}
}
