package api

import (
	"mime"
	"mime/multipart"
	"net/http"

	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/file/asset"
	"atelier/internal/file/ingest"
	"atelier/internal/file/library"
	"atelier/internal/file/media"
	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// viewerOf is a call as the library knows it.
func viewerOf(c *call) library.Viewer {
	v := library.Viewer{PersonID: c.caller.PersonID, Manager: map[string]bool{}}
	for _, a := range c.caller.Accounts() {
		v.AccountIDs = append(v.AccountIDs, a.AccountID)
		v.Manager[a.AccountID] = a.May(company.ManageTeam)
	}
	return v
}

// framing is what the parts of a form are taken to add to its files, where only
// the length of the whole is known.
const framing = 1 << 20

// createUpload is POST /uploads.
func (s *Server) createUpload(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	name := c.params.one("name")
	if err := c.params.failed(); err != nil {
		return err
	}
	taken, given, err := s.receiveUpload(w, r, c.caller.AccountID)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not waited for
		return inPart(err, "file")
	}
	if name == "" {
		name = given
	}
	u, err := s.Library.AddUpload(r.Context(), viewerOf(c), c.caller.AccountID, name, taken)
	if err != nil {
		if refused(err) {
			s.Intake.Drop(r.Context(), taken)
		}
		return inPart(err, "file")
	}
	return reply(w, http.StatusCreated, s.asUpload(u, c.caller.PersonID))
}

// roomFor tells how many bytes the account can store, and refuses the request
// where its Content-Length says that it brings more, or where the account or the
// disk is full. The file of a form is taken to be smaller than the form by what
// may surround it.
func (s *Server) roomFor(r *http.Request, accountID string) (room int64, err error) {
	if err := s.Space(); err != nil {
		return 0, err
	}
	brings := max(r.ContentLength, 1)
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		brings = max(r.ContentLength-framing, 1)
	}
	return s.Library.Room(r.Context(), accountID, brings)
}

// outOfRoom is for a file that turned out to be larger than the account's room
// while it was read.
func outOfRoom(room int64) error {
	return fault.New(fault.StorageQuotaExceeded, "The account has no room for this file. Delete files, or ask the operator for more storage.").
		With("reason", "account").With("available_bytes", room)
}

// receiveUpload takes the file of a request: the part "file" of a form, or the
// body itself. It reads no more than there is room for.
func (s *Server) receiveUpload(w http.ResponseWriter, r *http.Request, accountID string) (taken ingest.Taken, name string, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		err = fault.New(fault.UnsupportedMediaType, "A Content-Type header is required: the type of the file, or multipart/form-data.")
		return taken, "", inPart(err, "body")
	}
	isForm := kind == "multipart/form-data"
	switch {
	case isForm && r.ContentLength > s.Limits.RequestBytes:
		return taken, "", tooLarge(s.Limits.RequestBytes)
	case !isForm && r.ContentLength > s.Limits.FileBytes:
		return taken, "", s.oversized(s.Limits.FileBytes)
	}
	room, err := s.roomFor(r, accountID)
	if err != nil {
		return taken, "", err
	}

	s.takeLarge(w, r)
	want := ingest.Want{MaxBytes: min(s.Limits.FileBytes, room), Turn: s.turn(r)}
	if !isForm {
		want.Declared = kind
		taken, err = s.takeFile(r, r.Body, want)
		return taken, "", err
	}
	found := false
	err = eachPart(r, func(part *multipart.Part) (err error) {
		if part.FormName() != "file" {
			return discard(part)
		}
		if found {
			return fault.New(fault.Invalid, "The request has two files.").Field("file", "Send one file in a request.")
		}
		found = true
		name = part.FileName()
		want.Declared = part.Header.Get("Content-Type")
		taken, err = s.takeFile(r, part, want)
		return err
	})
	if err == nil && !found {
		err = fault.New(fault.Invalid, "The request has no file.").Field("file", "This part is required.")
	}
	if err != nil {
		s.Intake.Drop(r.Context(), taken)
		return ingest.Taken{}, "", err
	}
	return taken, name, nil
}

// turn says whose files a request brings, and how long they may wait to be read.
func (s *Server) turn(r *http.Request) media.Turn {
	owner := callOf(r).caller.PersonID
	if owner == "" {
		owner = httpd.AddressKey(httpd.RecordOf(r.Context()).Addr)
	}
	return media.Turn{Owner: owner, Wait: s.Limits.DecodeWait}
}

func (s *Server) asUpload(u asset.Upload, viewerID string) wire.Upload {
	names := library.UploadNames(u)
	return wire.Upload{
		ID:              u.ID,
		URL:             s.Links.URL(library.OfUpload, u.ID, library.Whole, viewerID, names.Whole),
		ThumbURL:        link(s.Links, library.OfUpload, u.ID, library.Thumb, viewerID, names),
		Name:            u.Name,
		Created:         moment(u.Created),
		MimeType:        u.Asset.MimeType,
		Type:            wire.Medium(u.Asset.Type),
		SizeBytes:       u.Asset.Size,
		Sha256:          u.Asset.SHA256,
		Width:           countOrNull(int64(u.Asset.Width)),
		Height:          countOrNull(int64(u.Asset.Height)),
		DurationSeconds: playing(u.Asset.Duration),
	}
}

func (s *Server) listUploads(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	pg, err := s.page(c.params, cursor.Scope("uploads", c.caller.PersonID, c.caller.AccountID))
	if err != nil {
		return err
	}
	after, err := pg.place()
	if err != nil {
		return err
	}
	all, err := s.Library.Uploads(r.Context(), viewerOf(c), c.caller.AccountID, after, pg.limit+1)
	if err != nil {
		return err
	}
	all, more, next := cut(s, pg, all, func(u asset.Upload) (string, string) { return micros(u.Created), u.ID })
	list := wire.UploadList{Data: make([]wire.Upload, 0, len(all)), HasMore: more, NextCursor: next}
	for _, u := range all {
		list.Data = append(list.Data, s.asUpload(u, c.caller.PersonID))
	}
	return reply(w, http.StatusOK, list)
}

// place is where the page before ended, in lists of the library.
func (l listing) place() (*library.Place, error) {
	if l.after == nil {
		return nil, nil
	}
	at, err := l.time()
	return &library.Place{Created: at, ID: l.after[1]}, err
}

func (s *Server) getUpload(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	u, err := s.Library.Upload(r.Context(), viewerOf(c), c.caller.AccountID, r.PathValue("upload_id"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, s.asUpload(u, c.caller.PersonID))
}

func (s *Server) deleteUpload(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	if err := c.params.failed(); err != nil {
		return err
	}
	if err := s.Library.DeleteUpload(r.Context(), viewerOf(c), c.caller.AccountID, r.PathValue("upload_id")); err != nil {
		return err
	}
	return done(w)
}
