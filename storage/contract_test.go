package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/storage"
)

// testContract is the conformance suite of stores, for the stores that open returns. Each call of open must return an
// empty store without other users, and clean it up at the end of t.
func testContract(t *testing.T, open func(t *testing.T) storage.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, storage.Store)
	}{
		{"put then get", testPutGet},
		{"not found", testNotFound},
		{"create only once", testCreateOnce},
		{"create race", testCreateRace},
		{"put race", testPutRace},
		{"delete", testDelete},
		{"stat", testStat},
		{"list order", testListOrder},
		{"list prefix", testListPrefix},
		{"list break", testListBreak},
		{"ownership of bytes", testOwnership},
		{"bad keys", testBadKeys},
		{"bad prefixes", testBadPrefixes},
		{"cancelled", testCancelled},
		{"concurrent use", testConcurrent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func testPutGet(t *testing.T, s storage.Store) {
	allBytes := make([]byte, 256)
	for i := range allBytes {
		allBytes[i] = byte(i)
	}
	cases := []struct {
		name, key string
		data      []byte
	}{
		{"text", "a.txt", []byte("hello\n")},
		{"nested", "items/00/result.json", []byte("{}")},
		{"binary", "binary", allBytes},
		{"empty", "empty", []byte{}},
		{"nil", "nil", nil},
		{"large", "large/8MiB", randomBytes(8<<20, 1)},
		{"spaces and unicode", "Bild 1/größe=ü&x?.png", []byte("x")},
		{"long key", strings.Repeat("k", 255) + "/" + strings.Repeat("l", 254) + "/m", []byte("y")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			must(t, s.Put(ctx, c.key, []byte("old, and longer than some of the new values")))
			must(t, s.Put(ctx, c.key, c.data))
			wantBytes(t, s, c.key, c.data)
			must(t, s.Delete(ctx, c.key))
			must(t, s.Create(ctx, c.key, c.data))
			wantBytes(t, s, c.key, c.data)
		})
	}
}

func testNotFound(t *testing.T, s storage.Store) {
	ctx := t.Context()
	must(t, s.Put(ctx, "dir/object", []byte("x")))
	for _, key := range []string{"none", "dir", "dir/none", "dir/object/below", "dir/objec"} {
		if _, err := s.Get(ctx, key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get(%q) = %v, want ErrNotFound", key, err)
		} else if !strings.Contains(err.Error(), key) {
			t.Errorf("error %q does not contain the key %q", err, key)
		}
		if _, err := s.Stat(ctx, key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Stat(%q) = %v, want ErrNotFound", key, err)
		}
	}
}

func testCreateOnce(t *testing.T, s storage.Store) {
	ctx := t.Context()
	must(t, s.Create(ctx, "id/result", []byte("first")))
	if err := s.Create(ctx, "id/result", []byte("second")); !errors.Is(err, storage.ErrExists) {
		t.Fatalf("second Create = %v, want ErrExists", err)
	}
	wantBytes(t, s, "id/result", []byte("first"))
	must(t, s.Put(ctx, "id/result", []byte("put")))
	wantBytes(t, s, "id/result", []byte("put"))
	if err := s.Create(ctx, "id/result", nil); !errors.Is(err, storage.ErrExists) {
		t.Fatalf("Create after Put = %v, want ErrExists", err)
	}
	must(t, s.Delete(ctx, "id/result"))
	must(t, s.Create(ctx, "id/result", []byte("again")))
	wantBytes(t, s, "id/result", []byte("again"))
}

// testCreateRace lets many creators race for one key with different bytes.
func testCreateRace(t *testing.T, s storage.Store) {
	const rounds, creators = 8, 16
	ctx := t.Context()
	for round := range rounds {
		key := fmt.Sprintf("race/%d/result.json", round)
		errs := make([]error, creators)
		read := make([][]byte, creators)
		concurrently(creators, func(i int) {
			errs[i] = s.Create(ctx, key, raceBytes(i))
			read[i], _ = s.Get(ctx, key)
		})
		succeeded := -1
		for i, err := range errs {
			switch {
			case err == nil && succeeded < 0:
				succeeded = i
			case err == nil:
				t.Fatalf("creators %d and %d both succeeded", succeeded, i)
			case !errors.Is(err, storage.ErrExists):
				t.Fatalf("creator %d: %v, want ErrExists", i, err)
			}
		}
		if succeeded < 0 {
			t.Fatal("no creator succeeded")
		}
		for i := range read {
			if !bytes.Equal(read[i], raceBytes(succeeded)) {
				t.Fatalf("after its Create, creator %d does not read the bytes of creator %d, who succeeded", i, succeeded)
			}
		}
	}
}

// testPutRace overwrites one key concurrently; readers must always see complete values.
func testPutRace(t *testing.T, s storage.Store) {
	const writers = 8
	ctx := t.Context()
	must(t, s.Put(ctx, "k", raceBytes(0)))
	concurrently(2*writers, func(i int) {
		for range 8 {
			if i < writers {
				if err := s.Put(ctx, "k", raceBytes(i)); err != nil {
					t.Errorf("Put: %v", err)
				}
				continue
			}
			got, err := s.Get(ctx, "k")
			if err != nil || len(got) == 0 || !bytes.Equal(got, raceBytes(int(got[0]))) {
				t.Errorf("Get = %d bytes that no writer put (error %v)", len(got), err)
			}
		}
	})
}

// raceBytes returns the bytes of writer i, which their first byte and their length identify.
func raceBytes(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 5000+1000*i) }

func testDelete(t *testing.T, s storage.Store) {
	ctx := t.Context()
	must(t, s.Delete(ctx, "never/was"))
	must(t, s.Put(ctx, "a/b", []byte("x")))
	must(t, s.Put(ctx, "a/c", []byte("y")))
	must(t, s.Delete(ctx, "a"))
	must(t, s.Delete(ctx, "a/b/c"))
	wantKeys(t, s, "", "a/b", "a/c")
	must(t, s.Delete(ctx, "a/b"))
	must(t, s.Delete(ctx, "a/b"))
	wantKeys(t, s, "", "a/c")
}

func testStat(t *testing.T, s storage.Store) {
	ctx := t.Context()
	// The clock of a store may be coarse and on another machine.
	begin := time.Now().Add(-time.Minute)
	must(t, s.Put(ctx, "a/b", []byte("12345")))
	info, err := s.Stat(ctx, "a/b")
	must(t, err)
	if info.Key != "a/b" || info.Size != 5 {
		t.Errorf("Stat = %+v, want key a/b of 5 bytes", info)
	}
	if end := time.Now().Add(time.Minute); info.Modified.Before(begin) || info.Modified.After(end) {
		t.Errorf("Modified = %v, want between %v and %v", info.Modified, begin, end)
	}
	for listed, err := range s.List(ctx, "a/b") {
		must(t, err)
		if listed.Key != info.Key || listed.Size != info.Size || !listed.Modified.Truncate(time.Second).Equal(info.Modified.Truncate(time.Second)) {
			t.Errorf("List = %+v, Stat = %+v", listed, info)
		}
	}
}

func testConcurrent(t *testing.T, s storage.Store) {
	const workers, each = 8, 12
	ctx := t.Context()
	concurrently(workers, func(w int) {
		for i := range each {
			key := fmt.Sprintf("shared/%02d/worker-%d", i, w)
			if err := s.Create(ctx, key, []byte(key)); err != nil {
				t.Errorf("Create: %v", err)
			}
			for _, err := range s.List(ctx, "shared/") {
				if err != nil {
					t.Errorf("List: %v", err)
				}
			}
			if got, err := s.Get(ctx, key); err != nil || string(got) != key {
				t.Errorf("Get(%q) = %q, %v", key, got, err)
			}
			if i%2 == 1 {
				if err := s.Delete(ctx, key); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
		}
	})
	if got := keys(t, s, "shared/"); len(got) != workers*each/2 {
		t.Errorf("%d objects remain, want %d", len(got), workers*each/2)
	}
}

// concurrently runs f(0) to f(n-1) concurrently and waits for all calls.
func concurrently(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func wantBytes(t *testing.T, s storage.Store, key string, want []byte) {
	t.Helper()
	wantGet(t, s, key, want)
	info, err := s.Stat(t.Context(), key)
	must(t, err)
	if info.Size != int64(len(want)) {
		t.Fatalf("Stat(%q).Size = %d, want %d", key, info.Size, len(want))
	}
}

func keys(t *testing.T, s storage.Store, prefix string) []string {
	t.Helper()
	var got []string
	for info, err := range s.List(t.Context(), prefix) {
		must(t, err)
		got = append(got, info.Key)
	}
	return got
}

func wantKeys(t *testing.T, s storage.Store, prefix string, want ...string) {
	t.Helper()
	if got := keys(t, s, prefix); !slices.Equal(got, want) {
		t.Fatalf("List(%q)\n got %q\nwant %q", prefix, got, want)
	}
}

// cancelled returns a cancelled context.
func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
