package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
)

// VerifyFiles reads the bytes of every file that has some and tells of each
// one that is not what its row says. It returns an error where it could not
// look at all.
func (l *Library) VerifyFiles(ctx context.Context, tell func(problem string)) error {
	return l.verifyEach(ctx, l.verifyBytes, tell)
}

// VerifySizes is VerifyFiles without reading the bytes: it tells of those that
// are missing or have another length.
func (l *Library) VerifySizes(ctx context.Context, tell func(problem string)) error {
	return l.verifyEach(ctx, l.verifySize, tell)
}

func (l *Library) verifyEach(ctx context.Context, verify func(context.Context, asset.Asset) (string, error), tell func(problem string)) error {
	return l.EachFile(ctx, func(a asset.Asset) error {
		problem, err := verify(ctx, a)
		if err != nil {
			return err
		}
		if problem != "" && !l.isGone(ctx, a.ID) { // a sweep may have been by
			tell("asset " + a.ID + ": " + problem)
		}
		return nil
	})
}

// EachFile gives every file that has bytes, in the order of their ids: as far as
// it says what and where the bytes are. A page is read at a time.
func (l *Library) EachFile(ctx context.Context, do func(asset.Asset) error) error {
	for last := ""; ; {
		var files []asset.Asset
		err := l.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
			files, err = filesAfter(ctx, tx, last)
			return err
		})
		if err != nil || len(files) == 0 {
			return err
		}
		for _, a := range files {
			last = a.ID
			if err := do(a); err != nil {
				return err
			}
		}
	}
}

func (l *Library) verifyBytes(ctx context.Context, a asset.Asset) (problem string, err error) {
	r, _, err := l.Blobs.Open(ctx, a.Blob, 0, -1)
	if err != nil {
		return classifyReadError(err, "no bytes at "+a.Blob)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return classifyReadError(err, "")
	}
	if n != a.Size {
		return fmt.Sprintf("%d bytes at %s, want %d", n, a.Blob, a.Size), nil
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return "other bytes at " + a.Blob + " than were stored", nil
	}
	return l.verifyPictures(ctx, a)
}

// verifySize is verify by what the store says about a file.
func (l *Library) verifySize(ctx context.Context, a asset.Asset) (problem string, err error) {
	info, err := l.Blobs.Stat(ctx, a.Blob)
	if err != nil {
		return classifyReadError(err, "no bytes at "+a.Blob)
	}
	if info.Size != a.Size {
		return fmt.Sprintf("%d bytes at %s, want %d", info.Size, a.Blob, a.Size), nil
	}
	return l.verifyPictures(ctx, a)
}

// verifyPictures looks whether the pictures of a file are there.
func (l *Library) verifyPictures(ctx context.Context, a asset.Asset) (problem string, err error) {
	for _, key := range []string{a.Thumb, a.Preview} {
		if key == "" {
			continue
		}
		if _, err := l.Blobs.Stat(ctx, key); err != nil {
			return classifyReadError(err, "no bytes at "+key)
		}
	}
	return "", nil
}

// classifyReadError tells a file that can't be read from a store that can't be.
func classifyReadError(err error, missing string) (problem string, _ error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), fault.Is(err, fault.Unavailable):
		return "", err
	case errors.Is(err, blob.ErrNotFound):
		return missing, nil
	}
	return err.Error(), nil
}

// isGone tells whether the bytes of a file were removed on purpose by now.
func (l *Library) isGone(ctx context.Context, id string) (gone bool) {
	err := l.DB.Read(ctx, func(tx *sqldb.Tx) error {
		a, err := asset.Get(ctx, tx, id)
		gone = !a.Gone.IsZero()
		return err
	})
	return err == nil && gone
}
