package replicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"time"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"
	"golang.org/x/sync/errgroup"

	"atelier/internal/file/blob"
)

// client gives Litestream access to a file store. The keys are those that
// Litestream itself uses in a bucket, so its own program can restore from the
// store, too.
type client struct {
	store blob.Store
}

// headersAtOnce is the number of files whose headers are read at the same time.
const headersAtOnce = 16

// Type implements litestream.ReplicaClient.
func (c *client) Type() string { return "atelier" }

// Init implements litestream.ReplicaClient.
func (c *client) Init(context.Context) error { return nil }

// SetLogger implements litestream.ReplicaClient. The client logs nothing.
func (c *client) SetLogger(*slog.Logger) {}

// LTXFiles implements litestream.ReplicaClient. The time of a file is in its
// header, which is read only if the caller needs exact times.
func (c *client) LTXFiles(ctx context.Context, level int, seek ltx.TXID, exactTimes bool) (ltx.FileIterator, error) {
	var found []*ltx.FileInfo
	for item, err := range c.store.List(ctx, litestream.LTXLevelDir("", level)) {
		if err != nil {
			return nil, err
		}
		first, last, err := ltx.ParseFilename(path.Base(item.Key))
		if err != nil || first < seek {
			continue
		}
		found = append(found, &ltx.FileInfo{
			Level:     level,
			MinTXID:   first,
			MaxTXID:   last,
			Size:      item.Size,
			CreatedAt: item.Modified.UTC(),
		})
	}
	if exactTimes {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(headersAtOnce)
		for _, info := range found {
			group.Go(func() error {
				header, err := litestream.FetchLTXHeader(ctx, c, info)
				info.CreatedAt = time.UnixMilli(header.Timestamp).UTC()
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	return ltx.NewFileInfoSliceIterator(found), nil
}

// OpenLTXFile implements litestream.ReplicaClient. A size of 0 reads to the end.
func (c *client) OpenLTXFile(ctx context.Context, level int, first, last ltx.TXID, offset, size int64) (io.ReadCloser, error) {
	if size == 0 {
		size = -1
	}
	key := litestream.LTXFilePath("", level, first, last)
	f, _, err := c.store.Open(ctx, key, offset, size)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("open %s: %w", key, os.ErrNotExist)
	}
	return f, err
}

// WriteLTXFile implements litestream.ReplicaClient.
func (c *client) WriteLTXFile(ctx context.Context, level int, first, last ltx.TXID, r io.Reader) (*ltx.FileInfo, error) {
	header, whole, err := ltx.PeekHeader(r)
	if err != nil {
		return nil, fmt.Errorf("read the header of a change: %w", err)
	}
	n, err := c.store.Put(ctx, litestream.LTXFilePath("", level, first, last), whole)
	if err != nil {
		return nil, err
	}
	return &ltx.FileInfo{
		Level:     level,
		MinTXID:   first,
		MaxTXID:   last,
		Size:      n,
		CreatedAt: time.UnixMilli(header.Timestamp).UTC(),
	}, nil
}

// DeleteLTXFiles implements litestream.ReplicaClient.
func (c *client) DeleteLTXFiles(ctx context.Context, files []*ltx.FileInfo) error {
	for _, info := range files {
		if err := c.store.Delete(ctx, litestream.LTXFilePath("", info.Level, info.MinTXID, info.MaxTXID)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteAll implements litestream.ReplicaClient.
func (c *client) DeleteAll(ctx context.Context) error {
	for item, err := range c.store.List(ctx, litestream.LTXDir("")) {
		if err != nil {
			return err
		}
		if err := c.store.Delete(ctx, item.Key); err != nil {
			return err
		}
	}
	return nil
}
