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

// errReadOnly is the answer of a store that was opened for reading.
var errReadOnly = errors.New("the blob store was opened for reading")

// openDiskReadOnly opens a folder as it is. One that is missing holds nothing.
func openDiskReadOnly(folder string) (Store, error) {
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return empty{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &disk{root: root}, nil
}

// readOnly is a store that refuses changes.
type readOnly struct{ Store }

func (readOnly) Put(context.Context, string, io.Reader) (int64, error) { return 0, errReadOnly }
func (readOnly) Delete(context.Context, string) error                  { return errReadOnly }
func (readOnly) Sweep(context.Context, time.Time) error                { return errReadOnly }
func (readOnly) Ping(context.Context) error                            { return errReadOnly }

// empty is the store in a folder that was never made. readOnly wraps it.
type empty struct{ Store }

func (empty) Open(_ context.Context, key string, _, _ int64) (io.ReadCloser, Info, error) {
	return nil, Info{}, fmt.Errorf("open %s: %w", key, ErrNotFound)
}

func (empty) Stat(_ context.Context, key string) (Info, error) {
	return Info{}, fmt.Errorf("stat %s: %w", key, ErrNotFound)
}

func (empty) List(context.Context, string) iter.Seq2[Item, error] {
	return func(func(Item, error) bool) {}
}

func (empty) Close() error { return nil }
