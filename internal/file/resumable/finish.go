package resumable

import (
	"context"
	"io"

	"atelier/internal/base/failpoint"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/people/person"
)

// finish validates the whole file, and adds it to the library. A file that can
// never be accepted ends the upload.
func (a *appending) finish(ctx context.Context) error {
	s := a.service
	var parts []part
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		parts, err = partsOf(ctx, tx, a.upload.ID)
		return err
	})
	if err != nil {
		a.discard(ctx)
		return err
	}

	parts = append(parts, a.pending...)
	whole := &partsReader{ctx: ctx, blobs: s.Intake.Blobs, parts: parts}
	file, err := s.Intake.IngestFile(ctx, whole, ingest.Options{
		MaxBytes: a.upload.Length,
		Decode:   media.DecodeRequest{Owner: a.principal.PersonID, Timeout: s.Settings.DecodeWait},
	})
	whole.closePart()
	if err != nil {
		a.discard(ctx)
		if isFinal(err) {
			return a.abandon(ctx, err)
		}
		return a.explain(ctx, err)
	}

	failpoint.Hit("resumable.after_ingest")
	if err := a.addUpload(ctx, file); err != nil {
		if isRefusal(err) {
			s.Intake.DiscardFiles(ctx, file)
			a.discard(ctx)
		}
		return err
	}
	s.deleteBlobs(ctx, keysOf(parts))
	a.pending = nil
	a.received = 0
	return nil
}

// addUpload adds the file to the library, and records that the upload is
// finished.
func (a *appending) addUpload(ctx context.Context, file ingest.StoredFile) error {
	s := a.service
	current := a.upload
	var finished Upload
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		// Create locks the person before the upload too.
		if err := person.Lock(ctx, tx, a.principal.PersonID); err != nil {
			return err
		}
		u, err := a.lock(ctx, tx)
		current = u
		if err != nil {
			return err
		}
		if err := deleteParts(ctx, tx, u.ID); err != nil {
			return err
		}

		added, err := library.InsertUpload(ctx, tx, s.Library.Storage, a.principal, library.UploadDraft{
			AccountID: u.AccountID,
			Name:      u.Name,
			File:      file,
			Reserved:  u.Length,
		})
		if err != nil {
			return err
		}

		finished = u
		finished.Offset = u.Length
		finished.parts = 0
		finished.UploadID = added.ID
		finished.Expires = tx.Now.Add(s.Settings.Lifetime)
		isFinished, err := finishUpload(ctx, tx, u.ID, u.Offset, added.ID, finished.Expires)
		if err == nil && !isFinished {
			err = offsetConflict(u)
		}
		return err
	})
	if err != nil {
		if isRefusal(err) {
			a.upload = current
		}
		return err
	}

	failpoint.Hit("resumable.after_finish")
	a.upload = finished
	return nil
}

// isFinal reports whether an error of ingest means that the file can never be
// accepted.
func isFinal(err error) bool {
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.UnsupportedMediaType) || fault.Is(err, fault.UploadTooLarge)
}

// abandon deletes the upload of a refused file, and returns the reason of the
// refusal. If another request has moved the offset meanwhile, the upload stays,
// and the error says so.
func (a *appending) abandon(ctx context.Context, reason error) error {
	s := a.service
	current := a.upload
	var removed []string
	err := s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		u, err := a.lock(ctx, tx)
		current = u
		if err != nil {
			return err
		}
		removed, err = removeUpload(ctx, tx, u)
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return reason
	case fault.Is(err, fault.UploadOffsetConflict):
		a.upload = current
		return err
	case err != nil:
		return err
	}
	s.deleteBlobs(ctx, removed)
	return reason
}

// explain returns the error of a file that could not be read from its parts. If
// another request has finished or deleted the upload, it has deleted the parts,
// and the error says that instead.
func (a *appending) explain(ctx context.Context, failure error) error {
	u, err := a.service.Get(ctx, a.principal, a.upload.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return err
	case err == nil && u.Offset != a.upload.Offset:
		a.upload = u
		return offsetConflict(u)
	}
	return failure
}

// partsReader reads the parts of a file one after the other, and verifies their
// hashes.
type partsReader struct {
	ctx     context.Context
	blobs   blob.Store
	parts   []part // those that have not been opened
	current io.ReadCloser
}

func (r *partsReader) Read(b []byte) (int, error) {
	for {
		if r.current == nil {
			if len(r.parts) == 0 {
				return 0, io.EOF
			}
			next := r.parts[0]
			opened, err := blob.OpenVerified(r.ctx, r.blobs, blob.File{Key: next.blob, Size: next.size, SHA256: next.sha256})
			if err != nil {
				return 0, err
			}
			r.current = opened
			r.parts = r.parts[1:]
		}

		n, err := r.current.Read(b)
		if err == io.EOF {
			r.closePart()
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (r *partsReader) closePart() {
	if r.current != nil {
		_ = r.current.Close()
		r.current = nil
	}
}
