package queue_test

import (
	"context"
	"sync"
	"testing"

	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
)

// leading answers requests until stop is called.
func leading(b *queue.Board, answer func(ctx context.Context, request []byte) []byte) (stop func()) {
	service := lifecycle.Go(context.Background(), func(ctx context.Context) error { return b.Answer(ctx, answer) })
	return service.Stop
}

// TestRequestReachesNextLeader: a request without a leader, and one whose leader ends while it answers, have the answer of the next leader.
func TestRequestReachesNextLeader(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	open(t, server, queue.Config{})
	clerk := openBoard(t, join(t, server))
	begun := make(chan string)
	var asking sync.WaitGroup
	asking.Go(func() {
		if answer, err := clerk.Request(t.Context(), []byte("question")); err != nil || string(answer) != "question answered" {
			t.Errorf("answer %q, %v", answer, err)
		}
	})
	first := leading(openBoard(t, join(t, server)), func(ctx context.Context, request []byte) []byte {
		begun <- string(request)
		<-ctx.Done()
		return nil
	})
	if got := <-begun; got != "question" {
		t.Errorf("request %q", got)
	}
	first()
	defer leading(openBoard(t, join(t, server)), func(_ context.Context, request []byte) []byte { return append(request, " answered"...) })()
	asking.Wait()
}

// TestManyRequests: more requests than a leader answers at a time each get their own answer.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	open(t, server, queue.Config{})
	defer leading(openBoard(t, join(t, server)), func(_ context.Context, request []byte) []byte { return request })()
	clerk := openBoard(t, join(t, server))
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			request := []byte{byte(i), byte(i >> 8)}
			if answer, err := clerk.Request(t.Context(), request); err != nil || string(answer) != string(request) {
				t.Errorf("request %d: %v, %v", i, answer, err)
			}
		})
	}
	all.Wait()
}
