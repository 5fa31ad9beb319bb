package testbed

import (
	"context"
	"fmt"
	"time"
)

// submitUnderFault submits the campaign that a fault of the store hits while it is divided into items. The fault begins
// when the coordinator has read a drawn number of the images.
func (s *session) submitUnderFault(ctx context.Context) (err error) {
	p := s.plans.sharding
	x := drawShardFault(s.o.seed, len(p.images), !s.o.brief)
	reached := s.fleet.network.after(Dataset, p.name+"/", x.due)
	if s.shardingID, err = s.submit(ctx, p); err != nil {
		return err
	}
	within := time.NewTimer(time.Minute)
	defer within.Stop()
	select {
	case <-reached:
	case <-within.C:
		return fmt.Errorf("campaign %s: the coordinator did not read %d images", s.shardingID, x.due)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	refused, d := unavailable, x.lasts(4*time.Second, 12*time.Second)
	switch x.kind {
	case shardKeys:
		refused = x.key()
	case s3ShardsOutage:
		d = x.lasts(outageLeast, outageMost)
	}
	s.note(x, fmt.Sprintf("%v for %.0f s, after %d of %d images", refused, d.Seconds(), x.due, len(p.images)))
	s.fleet.store.Lock()
	defer s.fleet.store.Unlock()
	defer s.fleet.network.refuse(refused)()
	sleep(ctx, d)
	return context.Cause(ctx)
}
