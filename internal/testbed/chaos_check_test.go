package testbed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ddiff/manifest"
)

// check verifies the results of the cluster and prints the figures.
func (s *session) check(ctx context.Context) error {
	end := time.Now()
	problems := []error{s.checkDamaged(ctx)}
	st, err := s.c.Status(ctx, s.soundID)
	if err != nil {
		return err
	}
	n := st.Counts
	if st.Phase != manifest.PhaseFinished || n.Items != s.sound.items() || n.Done+n.Dead != n.Items || n.Dead != 0 {
		problems = append(problems, fmt.Errorf("campaign %s is %s with %+v, want %d items done", s.soundID, st.Phase, n, s.sound.items()))
	}
	output := s.c.Results(s.soundID)
	found, err := Compare(s.reference(s.sound), output)
	if err != nil {
		return err
	}
	problems = append(problems, found.Err())
	s.say("compared with the undisturbed run: %d results; %d measurements differ in a bit, images by at most %d grey levels",
		found.Items, found.Measurements, found.Levels)
	out, err := s.c.Output(ctx, "verify", output)
	s.say("ddiff verify: %s", lastLine(out))
	if err != nil || count(lastLine(out), "ok") != n.Done {
		problems = append(problems, fmt.Errorf("ddiff verify: %s, want ok=%d: %v", lastLine(out), n.Done, err)) //nolint:errorlint // it may be nil
	}

	settled, err := settledTimes(output)
	if err != nil {
		return err
	}
	longest, of := recovery(s.journal.all, settled, end)
	logs, err := readLogs(s.c.Workers)
	if err != nil {
		return err
	}
	var faults []fault
	for _, h := range s.journal.all {
		faults = append(faults, h.fault)
	}
	if len(faults) != s.o.faults {
		problems = append(problems, fmt.Errorf("%d faults occurred, want %d", len(faults), s.o.faults))
	}
	s.say("faults: %s", histogram(faults))
	s.say("processes that exited without a fault and were restarted: %d", s.fleet.revivals)
	s.say("duplicate work: %d of %d items were solved again, a share of %.3f", logs.again, n.Items, float64(logs.again)/float64(n.Items))
	s.say("longest recovery: %.1f s, after fault %v", longest.Seconds(), of.fault)
	lost := n.Items - n.Done - n.Failed - n.Dead - n.Cancelled + found.Lost
	fmt.Fprintf(s.o.out, "items=%d faults=%d done=%d dead=%d lost=%d duplicates=%d redelivered=%d recovery_max_s=%d seed=%d\n",
		n.Items, len(faults), n.Done, n.Dead, lost, found.Duplicates+found.Extra, logs.redelivered,
		int(math.Ceil(longest.Seconds())), s.o.seed)
	return errors.Join(problems...)
}

// checkDamaged checks the campaign with damaged images: the same items failed as without faults,
// and the others are done.
func (s *session) checkDamaged(ctx context.Context) error {
	st, err := s.c.Status(ctx, s.damagedID)
	if err != nil {
		return err
	}
	found, err := Compare(s.reference(s.damaged), s.c.Results(s.damagedID))
	if err != nil {
		return err
	}
	n, sound := st.Counts, len(tasks)
	if st.Phase != manifest.PhaseFinished || n.Items != s.damaged.items() || n.Done != sound || n.Failed != n.Items-sound || found.Items != sound {
		return fmt.Errorf("campaign %s is %s with %+v, want %d done and the others failed", s.damagedID, st.Phase, n, sound)
	}
	s.say("damaged images: items=%d done=%d failed=%d dead=%d, as in the undisturbed run", n.Items, n.Done, n.Failed, n.Dead)
	return found.Err()
}
