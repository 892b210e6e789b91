package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"
)

// errReadOnly is the error for every change to a store that was opened
// read-only.
var errReadOnly = errors.New("the blob store is open for reading only")

// openDiskReadOnly opens a store in an existing folder. If the folder does not
// exist, the store is empty.
func openDiskReadOnly(folder string) (Store, error) {
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return emptyStore{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &disk{root: root}, nil
}

// readOnlyStore wraps a store and refuses changes to it.
type readOnlyStore struct{ Store }

func (readOnlyStore) Put(context.Context, string, io.Reader) (int64, error) { return 0, errReadOnly }
func (readOnlyStore) Delete(context.Context, string) error                  { return errReadOnly }
func (readOnlyStore) SweepUnfinished(context.Context, time.Time) error      { return errReadOnly }
func (readOnlyStore) Ping(context.Context) error                            { return errReadOnly }

// emptyStore is the store for a folder that does not exist. It is always
// wrapped by readOnlyStore, which refuses changes.
type emptyStore struct{ Store }

func (emptyStore) Open(_ context.Context, key string, _, _ int64) (io.ReadCloser, Info, error) {
	return nil, Info{}, fmt.Errorf("open %s: %w", key, ErrNotFound)
}

func (emptyStore) Stat(_ context.Context, key string) (Info, error) {
	return Info{}, fmt.Errorf("stat %s: %w", key, ErrNotFound)
}

func (emptyStore) List(context.Context, string) iter.Seq2[Item, error] {
	return func(func(Item, error) bool) {}
}

func (emptyStore) Close() error { return nil }
