package serve

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"ddiff/api"
)

// The limits of archives: their number, that of a token and that of an address, and the bytes of files in memory, because a client may take them
// slowly: those of all archives, which other answers do not wait for, and the share of a token.
const (
	maxArchives, maxTokenArchives, maxAddressArchives = 64, 8, 4
	archiveMemory, archiveShare                       = 512 << 20, 128 << 20
)

// senders are the archives that are being sent.
type senders struct {
	memory *semaphore.Weighted

	mu     sync.Mutex
	open   map[*sender]bool
	shares map[string]*semaphore.Weighted // of the tokens with open archives
}

// sender is an archive of a caller.
type sender struct {
	of             *senders
	token, address string
	share          *semaphore.Weighted
}

func newSenders() *senders {
	return &senders{memory: semaphore.NewWeighted(archiveMemory), open: map[*sender]bool{}, shares: map[string]*semaphore.Weighted{}}
}

// begin opens an archive of a caller. The caller ends it.
func (s *senders) begin(i identity) (*sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &sender{of: s, token: i.token.Owner + " " + i.token.ID, address: i.address}
	ofToken, ofAddress := 0, 0
	for other := range s.open {
		if other.token == a.token {
			if ofToken++; other.address == a.address {
				ofAddress++
			}
		}
	}
	if ofToken >= maxTokenArchives || ofAddress >= maxAddressArchives {
		return nil, api.NewError(api.ErrUnavailable, fmt.Sprintf("%d archives of this token are being sent, %d of them to this address; wait for their end", ofToken, ofAddress))
	}
	if len(s.open) >= maxArchives {
		return nil, api.NewError(api.ErrUnavailable, "many archives are being sent; try again later")
	}
	if a.share = s.shares[a.token]; a.share == nil {
		a.share = semaphore.NewWeighted(archiveShare)
		s.shares[a.token] = a.share
	}
	s.open[a] = true
	return a, nil
}

func (a *sender) end() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	delete(a.of.open, a)
	for other := range a.of.open {
		if other.token == a.token {
			return
		}
	}
	delete(a.of.shares, a.token)
}

// acquire waits for the memory of a file of up to archiveMemory, first for the share of the token; a larger file has the whole share. Release
// returns it.
func (a *sender) acquire(ctx context.Context, size int64) (release func(), err error) {
	share := min(size, archiveShare)
	if err := a.share.Acquire(ctx, share); err != nil {
		return nil, err
	}
	if err := a.of.memory.Acquire(ctx, size); err != nil {
		a.share.Release(share)
		return nil, err
	}
	return func() { a.of.memory.Release(size); a.share.Release(share) }, nil
}
