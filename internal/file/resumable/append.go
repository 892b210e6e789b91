package resumable

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/principal"
)

const (
	// partBytes is the maximum size of a part. A node that is killed loses at
	// most one part of each request without a checksum.
	partBytes = 8 << 20

	// moreParts is the number of parts beyond those of partBytes that an upload
	// may have. Every part is a file of its own, so a client must not send a large
	// file byte by byte.
	moreParts = 4096

	// MaxCheckedBytes is the maximum size of a chunk with a checksum. Its parts
	// wait for their rows until the whole chunk has arrived, and must not be
	// swept meanwhile.
	MaxCheckedBytes = 64 << 20
)

// Chunk is a sequence of bytes to append to an upload.
type Chunk struct {
	Offset   int64 // place of the first byte in the file
	Length   int64 // number of bytes; negative if unknown
	Body     io.Reader
	Checksum *Checksum // nil means none
}

// Checksum is the expected checksum of a chunk.
type Checksum struct {
	Hash hash.Hash // a new hash
	Sum  []byte
}

// Append stores the bytes of a chunk. If the chunk ends early, the bytes that
// have arrived are kept, unless it has a checksum, and the error is that of the
// body. The last bytes of a file are kept only if the file is accepted.
//
// The result is the state of the upload, also after an error.
func (s *Service) Append(ctx context.Context, p principal.Principal, id string, c Chunk) (Upload, error) {
	u, err := s.beginAppend(ctx, p, id)
	if err != nil {
		return Upload{}, err
	}
	if c.Offset != u.Offset {
		return u, offsetConflict(u)
	}
	if c.Length > u.Length-u.Offset {
		return u, tooLong(u)
	}
	if c.Checksum != nil && c.Length > MaxCheckedBytes {
		return u, tooLongToCheck()
	}

	a := &appending{
		service:   s,
		principal: p,
		upload:    u,
		body:      bufio.NewReaderSize(c.Body, 64<<10),
		checksum:  c.Checksum,
	}
	// A client that leaves must not lose the bytes that have arrived.
	err = a.run(context.WithoutCancel(ctx))
	return a.upload, err
}

// beginAppend returns an upload of the principal that takes more parts.
func (s *Service) beginAppend(ctx context.Context, p principal.Principal, id string) (Upload, error) {
	u, err := s.Get(ctx, p, id)
	if err == nil && u.parts >= moreParts+u.Length/partBytes {
		err = fault.New(fault.Invalid, "The upload has too many small parts. Start again with larger ones.").On("body")
	}
	return u, err
}

func offsetConflict(u Upload) error {
	return fault.New(fault.UploadOffsetConflict, "The offset is not that of the upload.").With("offset", u.Offset)
}

func tooLong(u Upload) error {
	return fault.New(fault.UploadTooLarge, "The request has more bytes than the upload lacks.").With("limit_bytes", u.Length-u.Offset).With("path", "body")
}

func tooLongToCheck() error {
	return fault.New(fault.PayloadTooLarge, "A request with a checksum is too large.").With("limit_bytes", MaxCheckedBytes).With("path", "body")
}

// appending is a running Append.
type appending struct {
	service   *Service
	principal principal.Principal
	upload    Upload
	body      *bufio.Reader
	checksum  *Checksum
	pending   []part // stored parts without a row
	received  int64  // bytes of pending
}

// run stores the body part by part. With a checksum no part counts before all
// have arrived.
func (a *appending) run(ctx context.Context) error {
	for {
		ended, err := a.storePart(ctx)
		switch {
		case err != nil:
			if a.checksum == nil && a.received > 0 && !a.complete() {
				err = errors.Join(err, a.commit(ctx)) // the bytes before the error
			} else {
				a.discard(ctx)
			}
			return err
		case ended:
			if err := a.verify(); err != nil {
				a.discard(ctx)
				return err
			}
			return a.commit(ctx)
		case a.checksum == nil && !a.complete():
			if err := a.commit(ctx); err != nil {
				return err
			}
		}
	}
}

// complete reports whether all bytes of the file have arrived.
func (a *appending) complete() bool { return a.upload.Offset+a.received == a.upload.Length }

// storePart stores the next part of the body, without a row. If the body fails,
// the part has the bytes before the failure. ended reports that the body has no
// more bytes.
func (a *appending) storePart(ctx context.Context) (ended bool, err error) {
	_, err = a.body.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		return true, nil
	case err != nil:
		return false, err
	case a.complete():
		return false, tooLong(a.upload)
	case a.checksum != nil && a.received >= MaxCheckedBytes:
		return false, tooLongToCheck()
	}

	start := a.upload.Offset + a.received
	sum := sha256.New()
	source := &partSource{from: io.LimitReader(a.body, min(partBytes, a.upload.Length-start)), sum: sum}
	if a.checksum != nil {
		source.checksum = a.checksum.Hash
	}
	key := newKey(a.upload.ID, start)
	size, err := a.service.Intake.Blobs.Put(ctx, key, source)
	if err != nil {
		return false, err
	}

	failpoint.Hit("resumable.after_part")
	a.pending = append(a.pending, part{start: start, size: size, sha256: hex.EncodeToString(sum.Sum(nil)), blob: key})
	a.received += size
	return false, source.err
}

// verify compares the checksum of the body with the expected one.
func (a *appending) verify() error {
	if a.checksum != nil && !bytes.Equal(a.checksum.Hash.Sum(nil), a.checksum.Sum) {
		return fault.New(fault.UploadChecksumMismatch, "The bytes do not match their checksum. Send them again.")
	}
	return nil
}

// commit makes the pending parts count. If they complete the file, it also
// finishes the upload.
func (a *appending) commit(ctx context.Context) error {
	if a.received == 0 {
		return nil
	}
	// A body can bring any number of parts, at the client's pace, so each commit
	// may use the database for as long as a request.
	ctx, _ = sqldb.WithBudget(ctx, sqldb.RequestBudget)
	if a.complete() {
		return a.finish(ctx)
	}

	s := a.service
	current := a.upload
	var moved Upload
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		u, err := a.lock(ctx, tx)
		current = u
		if err != nil {
			return err
		}

		moved = u
		moved.Offset += a.received
		moved.parts += int64(len(a.pending))
		moved.Expires = tx.Now.Add(s.Settings.Lifetime)
		isMoved, err := moveOffset(ctx, tx, u.Offset, moved)
		if err == nil && !isMoved {
			err = offsetConflict(u)
		}
		if err != nil {
			return err
		}

		for _, one := range a.pending {
			if err := insertPart(ctx, tx, u.ID, one); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		if isRefusal(err) {
			a.discard(ctx)
			a.upload = current
		}
		return err
	}

	failpoint.Hit("resumable.after_commit")
	a.upload = moved
	a.pending = nil
	a.received = 0
	return nil
}

// lock locks the row of the upload and returns it. It returns an error if other
// requests have changed the offset or have deleted the upload.
func (a *appending) lock(ctx context.Context, tx *sqldb.Tx) (Upload, error) {
	u, err := findUpload(ctx, tx, a.principal, a.upload.ID, tx.Dialect.ForUpdate)
	if err == nil && u.Offset != a.upload.Offset {
		err = offsetConflict(u)
	}
	return u, err
}

// discard deletes the pending parts.
func (a *appending) discard(ctx context.Context) {
	a.service.deleteBlobs(ctx, keysOf(a.pending))
	a.pending = nil
	a.received = 0
}

// isRefusal reports whether an error of a transaction proves that it was not
// committed.
func isRefusal(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code != fault.Unavailable
}

// partSource reads the bytes of one part. An error of the body ends the part, so
// that the bytes before it are stored; err has the error.
type partSource struct {
	from     io.Reader
	sum      hash.Hash
	checksum hash.Hash // nil means none
	err      error
}

func (p *partSource) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, io.EOF
	}

	n, err := p.from.Read(b)
	p.sum.Write(b[:n])
	if p.checksum != nil {
		p.checksum.Write(b[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		p.err = err
		err = io.EOF
	}
	return n, err
}
