package library

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"

	"atelier/internal/asset"
	"atelier/internal/blob"
	"atelier/internal/company"
	"atelier/internal/fault"
	"atelier/internal/ident"
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

// inline are the types that browsers show without running anything in them.
var inline = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/webp": true, "image/gif": true, "image/avif": true,
	"video/mp4": true, "video/webm": true, "video/quicktime": true,
	"audio/mpeg": true, "audio/wav": true, "audio/flac": true, "audio/ogg": true,
}

// errNoFile is one answer for what was deleted, what was swept and what has no
// such variant.
var errNoFile = fault.New(fault.NotFound, "There is no such file.")

// stored is what an address leads to, as the database has it.
type stored struct {
	accountID string
	suspended bool // the viewer is
	dead      bool // deleted, gone, or not pending any more
	base      string
	asset     asset.Asset
}

// Locate finds the bytes that a grant speaks of. The viewer must still be who
// may see them: the owner of a personal account, or a member of the team.
func (l *Library) Locate(ctx context.Context, g Grant) (File, error) {
	if !ident.Valid(g.ViewerID) {
		return File{}, errSignature
	}
	s, err := l.stored(ctx, g)
	if err != nil {
		return File{}, orMissing(err, errNoFile)
	}
	if err := l.admit(ctx, g.ViewerID, s); err != nil {
		return File{}, err
	}
	if s.dead {
		return File{}, errNoFile
	}
	a := s.asset
	switch g.Variant {
	case Whole:
		if a.Blob == "" {
			return File{}, errNoFile
		}
		f := File{
			Key: a.Blob, MimeType: a.MimeType, Size: a.Size, SHA256: a.SHA256,
			Name: saveAs(s.base, path.Ext(a.Blob)), Inline: inline[a.MimeType],
		}
		if f.MimeType == "text/plain" {
			f.MimeType += "; charset=utf-8" // no other text is taken in
		}
		return f, nil
	case Thumb:
		return l.picture(ctx, a.Thumb, s.base, g.Variant)
	case Preview:
		return l.picture(ctx, a.Preview, s.base, g.Variant)
	}
	return File{}, errNoFile
}

func (l *Library) stored(ctx context.Context, g Grant) (stored, error) {
	switch {
	case g.Kind == OfUpload && ident.Valid(g.ID):
		return storedUpload(ctx, l.DB, g.ID, g.ViewerID)
	case g.Kind == OfResult && validUUID(g.ID):
		s, place, err := storedResult(ctx, l.DB, g.ID, g.ViewerID)
		s.base = "result-" + strconv.Itoa(place+1)
		return s, err
	case g.Kind == OfInput && ident.Valid(g.ID):
		s, err := storedInput(ctx, l.DB, g.ID, g.ViewerID)
		s.base = "input"
		return s, err
	case g.Kind == OfRun && validUUID(g.ID):
		s, err := storedRun(ctx, l.DB, g.ID, g.ViewerID)
		s.base = "run"
		return s, err
	}
	return stored{}, errNoFile
}

// admit asks whether the viewer may still see things of the account. It tells
// no more than that the address does not work.
func (l *Library) admit(ctx context.Context, viewerID string, s stored) error {
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

// picture is a small file beside the file itself.
func (l *Library) picture(ctx context.Context, key, base, variant string) (File, error) {
	if key == "" {
		return File{}, errNoFile
	}
	info, err := l.Blobs.Stat(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return File{}, errNoFile
	}
	return File{
		Key: key, MimeType: info.ContentType, Size: info.Size,
		Name: saveAs(base+"-"+variant, path.Ext(key)), Inline: inline[info.ContentType],
	}, err
}

// maxSaveAs keeps names short enough for every file system, in characters.
const maxSaveAs = 100

// saveAs makes a name to save a file under: without anything that a file
// system takes for more than a letter, and with the extension that the bytes
// deserve.
func saveAs(name, ext string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	given := path.Ext(name)
	if lower := strings.ToLower(given); lower == ext || lower == ".jpeg" && ext == ".jpg" {
		name, ext = strings.TrimSuffix(name, given), lower
	}
	if letters := []rune(name); len(letters) > maxSaveAs {
		name = string(letters[:maxSaveAs])
	}
	if name = strings.Trim(name, ". "); name == "" {
		name = "file"
	}
	return name + ext
}
