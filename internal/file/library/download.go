package library

import (
	"context"
	"errors"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/file/asset"
	"atelier/internal/file/blob"
	"atelier/internal/people/company"
)

// File is where the bytes of an address are, and how they are to be served.
type File struct {
	Key      string
	MimeType string
	Size     int64
	SHA256   string // in hex; of the file itself only
	Name     string // to save it under
	Inline   bool   // a browser may show it; everything else is for saving
}

// inlineTypes are the types that browsers show without running anything in them.
var inlineTypes = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/webp": true, "image/gif": true, "image/avif": true,
	"video/mp4": true, "video/webm": true, "video/quicktime": true,
	"audio/mpeg": true, "audio/wav": true, "audio/flac": true, "audio/ogg": true,
}

// errNoFile is one answer for what was deleted, what was swept and what has no
// such variant.
var errNoFile = fault.New(fault.NotFound, "There is no such file.")

// storedFile is what an address leads to, as the database has it.
type storedFile struct {
	accountID   string
	suspended   bool   // the viewer is
	unavailable bool   // deleted, gone, or not pending any more
	name        string // of an upload
	tool        string // slug, of a result
	asset       asset.Asset
}

// Locate finds the bytes that a grant speaks of. The viewer must still be who
// may see them: the owner of a personal account, or a member of the team.
func (l *Library) Locate(ctx context.Context, g Grant) (File, error) {
	if !ids.Valid(g.ViewerID) {
		return File{}, errSignature
	}
	s, err := l.findStored(ctx, g)
	if err != nil {
		return File{}, orNotFound(err, errNoFile)
	}
	if err := l.checkAccess(ctx, g.ViewerID, s); err != nil {
		return File{}, err
	}
	if s.unavailable {
		return File{}, errNoFile
	}
	a := s.asset
	name := s.fileNames(g).Of(g.Variant)
	switch g.Variant {
	case Whole:
		if a.Blob == "" {
			return File{}, errNoFile
		}
		f := File{
			Key:      a.Blob,
			MimeType: a.MimeType,
			Size:     a.Size,
			SHA256:   a.SHA256,
			Name:     name,
			Inline:   inlineTypes[a.MimeType],
		}
		if f.MimeType == "text/plain" {
			f.MimeType += "; charset=utf-8" // no other text is taken in
		}
		return f, nil
	case Thumb:
		return l.findPicture(ctx, a.Thumb, name)
	case Preview:
		return l.findPicture(ctx, a.Preview, name)
	}
	return File{}, errNoFile
}

func (l *Library) findStored(ctx context.Context, g Grant) (storedFile, error) {
	switch {
	case g.Kind == OfUpload && ids.Valid(g.ID):
		return storedUpload(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == OfResult && validUUID(g.ID):
		return storedResult(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == OfInput && ids.Valid(g.ID):
		return storedInput(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == OfRun && validUUID(g.ID):
		return storedRun(ctx, l.DB, g.ID, g.ViewerID)
	}
	return storedFile{}, errNoFile
}

// fileNames are what the file behind a grant is called. Its address may end in
// another name, or in none: that one is never looked at.
func (s storedFile) fileNames(g Grant) Names {
	k := Keys{s.asset.Blob, s.asset.Thumb, s.asset.Preview}
	switch g.Kind {
	case OfUpload:
		return namesOf(s.name, k)
	case OfResult:
		return ResultNames(s.tool, g.ID, k)
	case OfRun:
		return RunNames(k.Preview)
	}
	return namesOf(inputName, k)
}

// checkAccess asks whether the viewer may still see things of the account. It tells
// no more than that the address does not work.
func (l *Library) checkAccess(ctx context.Context, viewerID string, s storedFile) error {
	if s.suspended {
		return errSignature
	}
	if viewerID == s.accountID {
		return nil
	}
	_, err := company.StandingOf(ctx, l.DB, viewerID, s.accountID)
	if errors.Is(err, company.ErrNotMember) {
		return errSignature
	}
	return err
}

// findPicture is a small file beside the file itself.
func (l *Library) findPicture(ctx context.Context, key, name string) (File, error) {
	if key == "" {
		return File{}, errNoFile
	}
	info, err := l.Blobs.Stat(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return File{}, errNoFile
	}
	return File{
		Key:      key,
		MimeType: info.ContentType,
		Size:     info.Size,
		Name:     name,
		Inline:   inlineTypes[info.ContentType],
	}, err
}
