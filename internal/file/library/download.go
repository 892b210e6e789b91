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

// File describes the file that a signed URL refers to and how to serve it.
type File struct {
	Key      string
	MimeType string
	Size     int64
	SHA256   string // hash in hexadecimal; empty for thumbnails and previews
	Name     string // file name for downloads
	Inline   bool   // browsers may display the file; otherwise it is served as an attachment
}

// inlineTypes are the content types that browsers display without executing
// code in them.
var inlineTypes = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/webp": true, "image/gif": true, "image/avif": true,
	"video/mp4": true, "video/webm": true, "video/quicktime": true,
	"audio/mpeg": true, "audio/wav": true, "audio/flac": true, "audio/ogg": true,
}

// errNoFile is the error for deleted files, files whose content has been
// deleted, and missing variants such as a thumbnail.
var errNoFile = fault.New(fault.NotFound, "There is no such file.")

// storedFile contains the database columns that are needed to serve a signed
// URL.
type storedFile struct {
	accountID   string
	suspended   bool   // the person for whom the URL was created is suspended
	unavailable bool   // the file is deleted, or the run that it belongs to is no longer pending
	name        string // name of the upload
	tool        string // slug of the tool that made the result
	asset       asset.Asset
}

// FindFile returns the file that a verified signed URL refers to. The person
// for whom the URL was created must still have access: as the owner of the
// personal account, or as a member of the team.
func (l *Library) FindFile(ctx context.Context, g SignedURL) (File, error) {
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
	name := s.fileNames(g).ByVariant(g.Variant)
	switch g.Variant {
	case VariantFile:
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
			f.MimeType += "; charset=utf-8" // ingested text is always UTF-8
		}
		return f, nil
	case VariantThumb:
		return l.findPicture(ctx, a.Thumb, name)
	case VariantPreview:
		return l.findPicture(ctx, a.Preview, name)
	}
	return File{}, errNoFile
}

func (l *Library) findStored(ctx context.Context, g SignedURL) (storedFile, error) {
	switch {
	case g.Kind == KindUpload && ids.Valid(g.ID):
		return storedUpload(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == KindResult && validUUID(g.ID):
		return storedResult(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == KindInput && ids.Valid(g.ID):
		return storedInput(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == KindRunPreview && validUUID(g.ID):
		return storedRun(ctx, l.DB, g.ID, g.ViewerID)
	}
	return storedFile{}, errNoFile
}

// fileNames returns the file names of the file that a signed URL refers to.
// The file name in the URL itself is ignored.
func (s storedFile) fileNames(g SignedURL) Names {
	k := Keys{s.asset.Blob, s.asset.Thumb, s.asset.Preview}
	switch g.Kind {
	case KindUpload:
		return namesOf(s.name, k)
	case KindResult:
		return ResultNames(s.tool, g.ID, k)
	case KindRunPreview:
		return RunNames(k.Preview)
	case KindInput:
		return namesOf(inputName, k)
	}
	return Names{}
}

// checkAccess checks that the person for whom a URL was created still has
// access to the file's account. The error does not contain the reason.
func (l *Library) checkAccess(ctx context.Context, viewerID string, s storedFile) error {
	if s.suspended {
		return errSignature
	}
	if viewerID == s.accountID {
		return nil
	}

	_, err := company.TeamMembershipOf(ctx, l.DB, viewerID, s.accountID)
	if errors.Is(err, company.ErrNotMember) {
		return errSignature
	}
	return err
}

// findPicture returns the thumbnail or preview with the given blob key. name
// is its file name for downloads.
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
