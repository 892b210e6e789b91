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

// VerifyFiles reads the content of every file and reports each file that does
// not match its row. It returns an error if the database or the whole store
// cannot be read.
func (l *Library) VerifyFiles(ctx context.Context, report func(problem string)) error {
	return l.verifyEach(ctx, l.verifyBytes, report)
}

// VerifySizes checks every file like VerifyFiles, but without reading the
// content: it reports missing files and wrong sizes.
func (l *Library) VerifySizes(ctx context.Context, report func(problem string)) error {
	return l.verifyEach(ctx, l.verifySize, report)
}

func (l *Library) verifyEach(ctx context.Context, verify func(context.Context, asset.Asset) (string, error), report func(problem string)) error {
	return l.EachFile(ctx, func(a asset.Asset) error {
		problem, err := verify(ctx, a)
		if err != nil {
			return err
		}
		if problem != "" && !l.isGone(ctx, a.ID) { // SweepFiles may have deleted the content meanwhile
			report("asset " + a.ID + ": " + problem)
		}
		return nil
	})
}

// EachFile calls do for every file that has content, in ascending order of
// IDs. Only the fields that locate and describe the content are set. Rows are
// read page by page.
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
		return classifyReadError(err, "missing file "+a.Blob)
	}

	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return classifyReadError(err, "")
	}
	if n != a.Size {
		return fmt.Sprintf("the file %s has %d bytes, want %d", a.Blob, n, a.Size), nil
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return "SHA-256 mismatch of the file " + a.Blob, nil
	}
	return l.verifyPictures(ctx, a)
}

// verifySize compares the size of a file in the blob store with its row. It
// returns "" if there is no problem.
func (l *Library) verifySize(ctx context.Context, a asset.Asset) (problem string, err error) {
	info, err := l.Blobs.Stat(ctx, a.Blob)
	if err != nil {
		return classifyReadError(err, "missing file "+a.Blob)
	}
	if info.Size != a.Size {
		return fmt.Sprintf("the file %s has %d bytes, want %d", a.Blob, info.Size, a.Size), nil
	}
	return l.verifyPictures(ctx, a)
}

// verifyPictures checks that the thumbnail and the preview of a file exist. It
// returns "" if there is no problem.
func (l *Library) verifyPictures(ctx context.Context, a asset.Asset) (problem string, err error) {
	for _, key := range []string{a.Thumb, a.Preview} {
		if key == "" {
			continue
		}
		if _, err := l.Blobs.Stat(ctx, key); err != nil {
			return classifyReadError(err, "missing file "+key)
		}
	}
	return "", nil
}

// classifyReadError returns err as a problem of one file or, if the whole
// store failed, as an error. missing is the problem for a file that does not
// exist.
func classifyReadError(err error, missing string) (problem string, _ error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), fault.Is(err, fault.Unavailable):
		return "", err
	case errors.Is(err, blob.ErrNotFound):
		return missing, nil
	}
	return err.Error(), nil
}

// isGone reports whether the content of a file has been deleted.
func (l *Library) isGone(ctx context.Context, id string) (gone bool) {
	err := l.DB.Read(ctx, func(tx *sqldb.Tx) error {
		a, err := asset.Get(ctx, tx, id)
		gone = !a.Gone.IsZero()
		return err
	})
	return err == nil && gone
}
