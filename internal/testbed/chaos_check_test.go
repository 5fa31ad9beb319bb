package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/internal/record"
)

// check verifies the results of the cluster and returns the figures.
func (s *session) check(ctx context.Context) (f figures, err error) {
	end := time.Now()
	problems := append([]error{s.checkDamaged(ctx)}, s.fleet.problems...)
	for id, p := range map[string]plan{s.soundID: s.plans.sound, s.shardingID: s.plans.sharding} {
		of, err := s.checkSound(ctx, id, p)
		f.add(of)
		problems = append(problems, err)
	}
	settled, err := settledTimes(s.c.Results(s.soundID))
	if err != nil {
		return f, err
	}
	longest, of := recovery(s.journal.all, settled, end)
	logs, err := readLogs(s.c.Workers)
	if err != nil {
		return f, err
	}
	var faults []fault
	for _, h := range s.journal.all {
		faults = append(faults, h.fault)
	}
	want := s.o.faults + 1 // the fault during sharding
	if !s.o.brief && outages[s.o.seed%uint64(len(outages))] != s3ShardsOutage {
		want++
	}
	if len(faults) != want {
		problems = append(problems, fmt.Errorf("%d faults occurred, want %d", len(faults), want))
	}
	s.say("faults: %s", histogram(faults))
	s.say("processes that exited without a fault and were restarted: %d", s.fleet.revivals)
	s.say("duplicate work: %d of %d items were solved again, a share of %.3f", logs.again, f.items, float64(logs.again)/float64(f.items))
	s.say("longest recovery: %.1f s, after fault %v", longest.Seconds(), of.fault)
	f.faults, f.redelivered, f.recovery = len(faults), logs.redelivered, longest
	err = errors.Join(problems...)
	if err != nil {
		s.say("problems: %v", err)
	}
	return f, err
}

// checkSound checks a campaign without damaged images: every item is done and equals the undisturbed run.
func (s *session) checkSound(ctx context.Context, id string, p plan) (f figures, err error) {
	st, err := s.c.Status(ctx, id)
	if err != nil {
		return f, err
	}
	var problems []error
	n := st.Counts
	if st.Phase != record.PhaseFinished || n.Items != p.items() || n.Done != n.Items {
		problems = append(problems, fmt.Errorf("campaign %s is %s with %+v, want %d items done", id, st.Phase, n, p.items()))
	}
	output := s.c.Results(id)
	found, err := Compare(s.reference.output(p), output)
	if err != nil {
		return f, errors.Join(append(problems, err)...)
	}
	problems = append(problems, found.Err())
	s.say("%s compared with the undisturbed run: %d results; %d measurements differ in a bit, images by at most %d grey levels",
		id, found.Items, found.Measurements, found.Levels)
	out, err := s.c.Output(ctx, "verify", output)
	s.say("ddiff verify: %s", lastLine(out))
	if err != nil || count(lastLine(out), "ok") != n.Done {
		problems = append(problems, fmt.Errorf("ddiff verify: %s, want ok=%d: %v", lastLine(out), n.Done, err)) //nolint:errorlint // it may be nil
	}
	// Lost items have neither a result nor a final state. A sound item that failed is lost too.
	lost := max(found.Lost-n.Dead, p.items()-n.Done-n.Dead)
	f = figures{items: p.items(), done: n.Done, dead: n.Dead, lost: lost, duplicates: found.Duplicates + found.Extra}
	return f, errors.Join(problems...)
}

// checkDamaged checks the campaign with damaged images: the same items failed as without faults,
// and the others are done.
func (s *session) checkDamaged(ctx context.Context) error {
	st, err := s.c.Status(ctx, s.damagedID)
	if err != nil {
		return err
	}
	p := s.plans.damaged
	found, err := Compare(s.reference.output(p), s.c.Results(s.damagedID))
	if err != nil {
		return err
	}
	n, sound := st.Counts, len(p.tasks)
	if st.Phase != record.PhaseFinished || n.Items != p.items() || n.Done != sound || n.Failed != n.Items-sound || found.Items != sound {
		return fmt.Errorf("campaign %s is %s with %+v, want %d done and the others failed", s.damagedID, st.Phase, n, sound)
	}
	s.say("damaged images: items=%d done=%d failed=%d dead=%d, as in the undisturbed run", n.Items, n.Done, n.Failed, n.Dead)
	return found.Err()
}
