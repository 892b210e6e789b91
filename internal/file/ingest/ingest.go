// Package ingest stores files from clients and engines in the blob store.
//
//	bytes ─ sniff ─ count and hash ─ clean ─ hash ─▶ blob store ─ analyze ─▶ thumbnail
//	                                                          └── measure, if no thumbnail is needed
//
// The bytes determine the format of a file, not its name or its declared type.
// Files are streamed: only a few blocks are in memory, for files of any length.
// A stored file has no owner until a transaction commits a row with its key. If
// the request fails, the file is deleted at once. A file that still has no row
// after an hour is deleted, too.
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

// Folder is the folder of all media files in the blob store.
const Folder = "media"

// discardTimeout is the time limit for deleting stored files after a failure.
const discardTimeout = 30 * time.Second

// Pipeline validates files, removes their metadata and stores them. It is safe
// for concurrent use.
type Pipeline struct {
	Blobs    blob.Store
	Analyzer *media.Analyzer
	// ExtractFrame extracts the first frame of a video as a JPEG. It is nil if
	// this node cannot do that.
	ExtractFrame func(ctx context.Context, mimeType string, video io.Reader) ([]byte, error)
}

// Options are the requirements for one file and the steps to process it.
type Options struct {
	MaxBytes     int64               // maximum size before metadata is removed
	Types        []media.Type        // accepted types; if empty, all that can be uploaded
	DeclaredType string              // Content-Type from the client; may be empty
	AllowText    bool                // also accept plain text, for outputs of tools
	XMP          []byte              // XMP metadata packet to embed; may be nil
	VideoPreview bool                // store a preview picture of a video
	NoThumbnail  bool                // do not decode the file, and store no thumbnail
	Decode       media.DecodeRequest // the owner of the file, and how long to wait for memory
}

// StoredFile is a file in the blob store that no database row refers to yet.
type StoredFile struct {
	Asset asset.Asset // the file's description; AccountID is empty
	// RawSHA256 and RawSize describe the file as it was sent, before metadata
	// was removed. If they are equal in two requests, the same file was sent.
	RawSHA256 string
	RawSize   int64
}

// Key returns the blob key of a file with the given ID and extension. If part
// is not empty, it returns the key of a picture of the file, for example of
// its thumbnail for "thumb". The last segment of a key begins with the file's
// ID.
func Key(id, part, ext string) string {
	if part != "" {
		part = "-" + part
	}
	return Folder + "/" + id[:2] + "/" + id + part + "." + ext
}

// IngestFile reads r to its end and stores the file. If it fails, nothing
// stays in the store. Errors are UploadTooLarge, UnsupportedMediaType, the
// errors of package media for a damaged file, and the errors of r.
func (in *Pipeline) IngestFile(ctx context.Context, r io.Reader, w Options) (StoredFile, error) {
	raw := &meter{from: r, maxBytes: w.MaxBytes, hash: sha256.New()}
	stored, err := in.runPipeline(ctx, raw, w)
	if err == nil {
		return stored, nil
	}

	in.DiscardFiles(ctx, stored)
	if raw.err != nil {
		err = raw.err // the original error; the readers in between wrap it with less detail
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return StoredFile{}, f
	}
	return StoredFile{}, fmt.Errorf("ingest file: %w", err)
}

// runPipeline stores the file. The result contains the keys that may have been
// written, even if it fails.
func (in *Pipeline) runPipeline(ctx context.Context, raw *meter, w Options) (stored StoredFile, err error) {
	head := make([]byte, media.HeadLength)
	n, err := io.ReadFull(raw, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return stored, err
	}

	head = head[:n]
	format, err := detectFormat(head, w)
	if err != nil {
		return stored, err
	}

	a := &stored.Asset
	a.ID = ids.New()
	a.Blob = Key(a.ID, "", format.Ext)
	if err := in.putCleaned(ctx, a, format, io.MultiReader(bytes.NewReader(head), raw), w.XMP); err != nil {
		return stored, err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // the bytes that Clean did not read, so that all bytes are counted and hashed
		return stored, err
	}

	stored.RawSHA256 = raw.hexSum()
	stored.RawSize = raw.bytesRead

	file, err := in.OpenFile(ctx, a.Blob)
	if err != nil {
		return stored, err
	}

	examine := in.Analyzer.AnalyzeFile
	if w.NoThumbnail {
		examine = in.Analyzer.MeasureFile
	}

	facts, err := examine(ctx, w.Decode, format, file, file.Size())
	if err != nil {
		return stored, err
	}

	a.Type = string(format.Type)
	a.MimeType = format.MimeType
	a.Width = facts.Width
	a.Height = facts.Height
	a.Blurhash = facts.Blurhash
	a.Duration = facts.Duration.Round(time.Millisecond) // precision of the database column
	if len(facts.Thumb) > 0 {
		a.Thumb = Key(a.ID, "thumb", facts.ThumbExt)
		a.PictureBytes = int64(len(facts.Thumb))
		if _, err := in.Blobs.Put(ctx, a.Thumb, bytes.NewReader(facts.Thumb)); err != nil {
			return stored, err
		}
	}
	if w.VideoPreview && format.Type == media.Video {
		err = in.storePreview(ctx, w.Decode, a)
	}
	return stored, err
}

// putCleaned stores a file without its metadata and with the XMP packet, under
// the blob key of the asset. It sets the size and the hash of the asset.
func (in *Pipeline) putCleaned(ctx context.Context, a *asset.Asset, format media.Format, file io.Reader, xmp []byte) error {
	cleaned := media.Clean(format, file)
	defer cleaned.Close()

	m := &meter{from: media.EmbedXMP(format, cleaned, xmp), maxBytes: -1, hash: sha256.New()}
	var err error
	if a.Size, err = in.Blobs.Put(ctx, a.Blob, m); err != nil {
		return err
	}

	a.SHA256 = m.hexSum()
	return nil
}

// storePreview stores the first frame of a video as its preview, and a
// thumbnail of the frame. A video without a readable frame is accepted without
// a preview and a thumbnail.
func (in *Pipeline) storePreview(ctx context.Context, t media.DecodeRequest, a *asset.Asset) error {
	if in.ExtractFrame == nil {
		return nil
	}

	video, _, err := in.Blobs.Open(ctx, a.Blob, 0, -1)
	if err != nil {
		return err
	}

	defer video.Close()
	picture, err := in.ExtractFrame(ctx, a.MimeType, video)
	format, ok := media.Sniff(picture)
	if err != nil || !ok || format.Type != media.Image {
		return ctx.Err()
	}

	facts, err := in.Analyzer.AnalyzeFile(ctx, t, format, bytes.NewReader(picture), int64(len(picture)))
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

// DiscardFiles deletes files that IngestFile stored and that no database row
// will refer to. It ignores errors and works even after ctx is cancelled;
// remaining files are deleted later by library.SweepFiles.
func (in *Pipeline) DiscardFiles(ctx context.Context, files ...StoredFile) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for _, t := range files {
		for _, key := range []string{t.Asset.Blob, t.Asset.Thumb, t.Asset.Preview} {
			if key != "" {
				_ = in.Blobs.Delete(ctx, key)
			}
		}
	}
}

// meter is a reader that counts and hashes the bytes read through it. It fails
// after maxBytes bytes; a negative maxBytes means no limit.
type meter struct {
	from      io.Reader
	maxBytes  int64
	hash      hash.Hash
	bytesRead int64
	err       error // first read error except io.EOF
}

func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	if left := m.maxBytes - m.bytesRead; m.maxBytes >= 0 && int64(len(p))-1 > left {
		p = p[:left+1] // one byte more shows that the file exceeds the limit
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
