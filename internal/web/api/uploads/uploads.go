// Package uploads serves /api/v2/uploads: the files that people upload.
package uploads

import (
	"math"
	"mime"
	"mime/multipart"
	"net/http"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/web/access"
	"atelier/internal/web/api/filebody"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// Handler serves the API endpoints for uploads.
type Handler struct {
	Library *library.Library
	Files   *filebody.Receiver
	Links   library.URLSigner
	Pages   rest.Pager
}

// Routes returns the routes of the operations on uploads.
func (h *Handler) Routes() []rest.Route {
	return []rest.Route{
		rest.NewRoute("GET /api/v2/uploads", access.ForAccount, h.listUploads),
		rest.NewRoute("POST /api/v2/uploads", access.ForAccount, h.createUpload),
		rest.NewRoute("GET /api/v2/uploads/{upload_id}", access.ForAccount, h.getUpload),
		rest.NewRoute("DELETE /api/v2/uploads/{upload_id}", access.ForAccount, h.deleteUpload),
	}
}

// createUpload serves POST /api/v2/uploads: it stores the file in the request.
func (h *Handler) createUpload(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	name := call.Params.ReadText("name")
	if err := call.Params.Err(); err != nil {
		return err
	}
	taken, fileName, err := h.receiveUpload(w, r, call.Principal.AccountID)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return rest.InPart(err, "file")
	}

	if name == "" {
		name = fileName
	}
	u, err := h.Library.AddUpload(r.Context(), call.Principal, call.Principal.AccountID, name, taken)
	if err != nil {
		if rest.IsRefusal(err) {
			h.Files.Intake.DiscardFiles(r.Context(), taken)
		}
		return rest.InPart(err, "file")
	}
	return rest.Reply(w, http.StatusCreated, h.asUpload(u, call.Principal.PersonID))
}

// receiveUpload reads and stores the file of a request: the part "file" of a
// multipart body, or the whole body. It reads no more bytes than the account
// can still store.
func (h *Handler) receiveUpload(w http.ResponseWriter, r *http.Request, accountID string) (taken ingest.StoredFile, name string, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		err = fault.New(fault.UnsupportedMediaType, "A Content-Type header is required: the type of the file, or multipart/form-data.")
		return taken, "", rest.InPart(err, "body")
	}
	isForm := kind == "multipart/form-data"
	switch {
	case isForm && r.ContentLength > h.Files.MaxRequestBytes:
		return taken, "", filebody.TooLarge(h.Files.MaxRequestBytes)
	case !isForm && r.ContentLength > h.Files.MaxFileBytes:
		return taken, "", h.Files.FileTooLarge(h.Files.MaxFileBytes)
	}
	room, err := h.Files.CheckRoom(r, accountID)
	if err != nil {
		return taken, "", err
	}

	want := ingest.Options{MaxBytes: min(h.Files.MaxFileBytes, room)}
	if isForm {
		h.Files.ExtendDeadlines(w, r, h.Files.MaxRequestBytes)
		return h.receivePart(r, want)
	}
	h.Files.ExtendDeadlines(w, r, math.MaxInt64) // no more is read than the file may have
	want.DeclaredType = kind
	taken, err = h.Files.ReceiveFile(r, r.Body, want)
	return taken, "", err
}

// receivePart reads and stores the part "file" of a multipart body. It also
// returns the file name in the part.
func (h *Handler) receivePart(r *http.Request, want ingest.Options) (taken ingest.StoredFile, name string, err error) {
	isFound := false
	err = filebody.EachPart(r, func(part *multipart.Part) (err error) {
		if part.FormName() != "file" {
			return filebody.Discard(part)
		}
		if isFound {
			return fault.New(fault.Invalid, "The request has two files.").Field("file", "Must be sent only once.")
		}
		isFound = true
		name = part.FileName()
		want.DeclaredType = part.Header.Get("Content-Type")
		taken, err = h.Files.ReceiveFile(r, part, want)
		return err
	})
	if err == nil && !isFound {
		err = fault.New(fault.Invalid, "The request has no file.").Field("file", "This part is required.")
	}
	if err != nil {
		h.Files.Intake.DiscardFiles(r.Context(), taken)
		return ingest.StoredFile{}, "", err
	}
	return taken, name, nil
}

// listUploads serves GET /api/v2/uploads: it lists the uploads of an account,
// newest first.
func (h *Handler) listUploads(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	medium := rest.ReadMedium(call.Params)
	page, err := h.Pages.ReadPage(call.Params, cursor.Scope("uploads", call.Principal.PersonID, call.Principal.AccountID, medium))
	if err != nil {
		return err
	}
	after, err := rest.LibraryCursor(page)
	if err != nil {
		return err
	}

	uploads, err := h.Library.ListUploads(r.Context(), call.Principal, call.Principal.AccountID, medium, after, page.Limit+1)
	if err != nil {
		return err
	}
	uploads, hasMore, next := rest.Cut(page, uploads, func(u asset.Upload) (string, string) { return rest.Micros(u.Created), u.ID })
	return rest.Reply(w, http.StatusOK, wire.UploadList{
		Data:       rest.Convert(uploads, func(u asset.Upload) wire.Upload { return h.asUpload(u, call.Principal.PersonID) }),
		HasMore:    hasMore,
		NextCursor: next,
	})
}

// getUpload serves GET /api/v2/uploads/{upload_id}: it returns an uploaded
// file's record.
func (h *Handler) getUpload(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	u, err := h.Library.GetUpload(r.Context(), call.Principal, call.Principal.AccountID, r.PathValue("upload_id"))
	if err != nil {
		return err
	}
	return rest.Reply(w, http.StatusOK, h.asUpload(u, call.Principal.PersonID))
}

// deleteUpload serves DELETE /api/v2/uploads/{upload_id}: it deletes an
// upload.
func (h *Handler) deleteUpload(w http.ResponseWriter, r *http.Request) error {
	call := rest.CallOf(r)
	if err := call.Params.Err(); err != nil {
		return err
	}
	if err := h.Library.DeleteUpload(r.Context(), call.Principal, call.Principal.AccountID, r.PathValue("upload_id")); err != nil {
		return err
	}
	return rest.NoContent(w)
}

// asUpload converts an upload to its API representation, with URLs signed for
// the viewer.
func (h *Handler) asUpload(u asset.Upload, viewerID string) wire.Upload {
	names := library.UploadNames(u)
	return wire.Upload{
		ID:              u.ID,
		URL:             h.Links.SignURL(library.KindUpload, u.ID, library.VariantFile, viewerID, names.File),
		ThumbURL:        rest.MediaURL(h.Links, library.KindUpload, u.ID, library.VariantThumb, viewerID, names),
		PreviewURL:      rest.MediaURL(h.Links, library.KindUpload, u.ID, library.VariantPreview, viewerID, names),
		Blurhash:        rest.TextOrNull(u.Asset.Blurhash),
		Name:            u.Name,
		Created:         rest.Moment(u.Created),
		MimeType:        u.Asset.MimeType,
		Type:            wire.Medium(u.Asset.Type),
		SizeBytes:       u.Asset.Size,
		Sha256:          u.Asset.SHA256,
		Width:           rest.NumberOrNull(int64(u.Asset.Width)),
		Height:          rest.NumberOrNull(int64(u.Asset.Height)),
		DurationSeconds: rest.SecondsOrNull(u.Asset.Duration),
	}
}
