package blob

import (
	"context"
	"io"
)

// spaceCheckInterval is the number of bytes that a Put stores between two
// checks of the free disk space.
const spaceCheckInterval = 4 << 20

// WithSpaceCheck returns a store whose Put calls check before it stores
// anything and again after every 4 MiB. If check returns an error, Put fails
// with it.
func WithSpaceCheck(s Store, check func() error) Store { return &spaceChecker{Store: s, check: check} }

type spaceChecker struct {
	Store
	check func() error
}

func (s *spaceChecker) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}

	left := spaceCheckInterval
	return s.Store.Put(ctx, key, readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		left -= n
		if left > 0 {
			return n, err
		}

		left = spaceCheckInterval
		if full := s.check(); full != nil {
			return 0, full
		}
		return n, err
	}))
}
