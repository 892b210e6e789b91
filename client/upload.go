package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// ResumableSize is the size in bytes above which Uploads.Create always sends a
// file resumably.
const ResumableSize = 8 << 20

// UploadRequest is a file to upload.
type UploadRequest struct {
	File File
	// Resumable sends the file in resumable form whatever its size. Files above
	// ResumableSize and files with a Key always are.
	Resumable bool
	// Key is an idempotency key: Create with the same key continues an
	// unfinished upload, also from another process, and returns a finished one
	// again. "" lets the client make one, and delete what has arrived if Create
	// fails.
	Key string
	// Progress is told how much was sent. It goes back if bytes were lost.
	Progress Progress
}

// Create uploads a file, for use as an input of runs (see UploadInput). The
// file is read while it is sent.
//
// A file up to 8 MiB is sent with one request (POST /uploads), which is sent
// again if the connection breaks; if only the answer was lost, the account has
// the file twice. Other files are sent resumably (POST /uploads/resumable, the
// tus protocol): after a failure the client asks how much has arrived and goes
// on from there, and the account has the file once. Set Resumable or Key where
// a second copy of a small file would matter.
func (g *UploadsCalls) Create(ctx context.Context, u UploadRequest) (*Upload, error) {
	f, err := u.File.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.close() }() // it was only read
	if u.Resumable || u.Key != "" || f.size > ResumableSize {
		return g.createResumably(ctx, f, u)
	}

	query := url.Values{}
	addText(query, "name", f.name)
	return callJSON[Upload](ctx, g.client, &request{
		method: http.MethodPost,
		path:   "/uploads",
		query:  query,
		header: http.Header{"Content-Type": {"application/octet-stream"}},
		body: func() io.Reader {
			whole := f.section(0, f.size)
			whole.progress = u.Progress
			return whole
		},
		length:     f.size,
		team:       true,
		repeatable: true,
	})
}

// CreateFromPath uploads the file at a path of the disk.
func (g *UploadsCalls) CreateFromPath(ctx context.Context, path string, progress Progress) (*Upload, error) {
	upload, err := g.Create(ctx, UploadRequest{File: FileAt(path), Progress: progress})
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", path, err)
	}
	return upload, nil
}
