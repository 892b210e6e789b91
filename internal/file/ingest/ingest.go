// Package ingest takes files from outside into the blob store.
//
//	bytes ─ sniff ─ count and hash ─ clean ─ hash ─▶ blob store ─ examine ─▶ thumbnail
//	                                                          └── measure, where nobody will look at it
//
// The bytes decide what a file is, not its name or what the sender says. They
// flow through: however long the file, what is in memory is a few blocks of
// it. What was taken belongs to nobody until somebody commits a row that names
// it; what nobody does is dropped, or swept after an hour.
package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/file/media"
)

// Folder holds every file in the blob store.
const Folder = "media"

// discardTimeout bounds how long tidying up after a failure may take.
const discardTimeout = 30 * time.Second

// Intake takes files in. It may be used by many at once.
type Intake struct {
	Blobs blob.Store
	Lab   *media.Lab
	// Frame gives the first frame of a video as a JPEG picture; nil where
	// nothing here can.
	Frame func(ctx context.Context, mimeType string, video io.Reader) ([]byte, error)
}

// Want says what a file may be.
type Want struct {
	MaxBytes int64        // as it is sent
	Types    []media.Type // empty: everything that can be uploaded
	Declared string       // the Content-Type that the sender claimed, "" for none
	Text     bool         // plain text too, which tools make and nobody uploads
	Mark     []byte       // XMP to put into it, nil for none
	Frame    bool         // a video gets a picture of its beginning
	Bare     bool         // nobody will look at it: no picture of it is made, and so it is not decoded
	Turn     media.Turn   // whose it is, and how long it may wait for its turn
}

// Taken is a file that lies in the store.
type Taken struct {
	Asset asset.Asset // of no account yet
	// RawSHA256 and RawSize are of the file as it was sent, before it was
	// cleaned: two requests with equal ones sent the same file.
	RawSHA256 string
	RawSize   int64
}

// Key gives the key of a file's bytes, or of a picture of them: part is "" or
// its name. Whose bytes a key names can be told from the key.
func Key(id, part, ext string) string {
	if part != "" {
		part = "-" + part
	}
	return Folder + "/" + id[:2] + "/" + id + part + "." + ext
}

// Take reads a file to its end and stores it. Where it fails, nothing stays
// behind. Its failures are UploadTooLarge, UnsupportedMediaType, what media
// says of a broken file, and what r fails with.
func (in *Intake) Take(ctx context.Context, r io.Reader, w Want) (Taken, error) {
	raw := &meter{from: r, maxBytes: w.MaxBytes, hash: sha256.New()}
	taken, err := in.runPipeline(ctx, raw, w)
	if err == nil {
		return taken, nil
	}
	in.Drop(ctx, taken)
	if raw.err != nil {
		err = raw.err // what the readers above it make of it says less
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return Taken{}, f
	}
	return Taken{}, fmt.Errorf("take a file: %w", err)
}

// runPipeline gives what may have been stored, on failure too.
func (in *Intake) runPipeline(ctx context.Context, raw *meter, w Want) (t Taken, err error) {
	head := make([]byte, media.HeadLength)
	n, err := io.ReadFull(raw, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return t, err
	}
	head = head[:n]
	format, err := detectFormat(head, w)
	if err != nil {
		return t, err
	}

	a := &t.Asset
	a.ID = ids.New()
	a.Blob = Key(a.ID, "", format.Ext)
	clean := &meter{from: media.Mark(format, media.Clean(format, io.MultiReader(bytes.NewReader(head), raw)), w.Mark), maxBytes: -1, hash: sha256.New()}
	if a.Size, err = in.Blobs.Put(ctx, a.Blob, clean); err != nil {
		return t, err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // what cleaning left off
		return t, err
	}
	a.SHA256 = clean.hexSum()
	t.RawSHA256 = raw.hexSum()
	t.RawSize = raw.bytesRead

	file, err := in.File(ctx, a.Blob)
	if err != nil {
		return t, err
	}
	examine := in.Lab.Examine
	if w.Bare {
		examine = in.Lab.Measure
	}
	facts, err := examine(ctx, w.Turn, format, file, file.Size())
	if err != nil {
		return t, err
	}
	a.Type = string(format.Type)
	a.MimeType = format.MimeType
	a.Width = facts.Width
	a.Height = facts.Height
	a.Blurhash = facts.Blurhash
	a.Duration = facts.Duration.Round(time.Millisecond) // as it is stored
	if len(facts.Thumb) > 0 {
		a.Thumb = Key(a.ID, "thumb", facts.ThumbExt)
		a.PictureBytes = int64(len(facts.Thumb))
		if _, err := in.Blobs.Put(ctx, a.Thumb, bytes.NewReader(facts.Thumb)); err != nil {
			return t, err
		}
	}
	if w.Frame && format.Type == media.Video {
		err = in.storePreview(ctx, w.Turn, a)
	}
	return t, err
}

// storePreview stores how a video begins: a picture of it, and a small one. A video of
// which there is none is no worse for that.
func (in *Intake) storePreview(ctx context.Context, t media.Turn, a *asset.Asset) error {
	if in.Frame == nil {
		return nil
	}
	video, _, err := in.Blobs.Open(ctx, a.Blob, 0, -1)
	if err != nil {
		return err
	}
	defer video.Close()
	picture, err := in.Frame(ctx, a.MimeType, video)
	format, ok := media.Sniff(picture)
	if err != nil || !ok || format.Type != media.Image {
		return ctx.Err()
	}
	facts, err := in.Lab.Examine(ctx, t, format, bytes.NewReader(picture), int64(len(picture)))
	if err != nil {
		return ctx.Err()
	}
	a.Preview = Key(a.ID, "preview", format.Ext)
	a.Blurhash = facts.Blurhash
	a.PictureBytes += int64(len(picture) + len(facts.Thumb))
	if _, err := in.Blobs.Put(ctx, a.Preview, bytes.NewReader(picture)); err != nil {
		return err
	}
	if len(facts.Thumb) == 0 {
		return nil
	}
	a.Thumb = Key(a.ID, "thumb", facts.ThumbExt)
	_, err = in.Blobs.Put(ctx, a.Thumb, bytes.NewReader(facts.Thumb))
	return err
}

// Drop removes what Take stored and nobody will own. It does what it can, even
// after ctx has ended; the sweep does the rest.
func (in *Intake) Drop(ctx context.Context, taken ...Taken) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for _, t := range taken {
		for _, key := range []string{t.Asset.Blob, t.Asset.Thumb, t.Asset.Preview} {
			if key != "" {
				in.Blobs.Delete(ctx, key)
			}
		}
	}
}

// meter counts and hashes what is read through it, and lets no more through
// than most bytes where that is not below zero.
type meter struct {
	from      io.Reader
	maxBytes  int64
	hash      hash.Hash
	bytesRead int64
	err       error // how reading ended, unless well
}

func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	if room := m.maxBytes - m.bytesRead; m.maxBytes >= 0 && int64(len(p))-1 > room {
		p = p[:room+1] // one more byte tells that there is more
	}
	n, err := m.from.Read(p)
	m.bytesRead += int64(n)
	if m.maxBytes >= 0 && m.bytesRead > m.maxBytes {
		m.err = fault.New(fault.UploadTooLarge, "The file is too large.").With("limit_bytes", m.maxBytes)
		return 0, m.err
	}
	m.hash.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

func (m *meter) hexSum() string { return hex.EncodeToString(m.hash.Sum(nil)) }
