package blob

import (
	"context"
	"io"
)

// spaceStep is how many bytes a Put takes between two looks at the free space.
const spaceStep = 4 << 20

// WithSpace gives a store whose Put asks check before it stores anything and
// again every few megabytes, and fails with its error.
func WithSpace(s Store, check func() error) Store { return &spacious{Store: s, check: check} }

type spacious struct {
	Store
	check func() error
}

func (s *spacious) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}

	left := spaceStep
	return s.Store.Put(ctx, key, readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		left -= n
		if left > 0 {
			return n, err
		}
		left = spaceStep
		if full := s.check(); full != nil {
			return 0, full
		}
		return n, err
	}))
}
