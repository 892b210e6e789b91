package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"atelier/internal/api/wire"
	"atelier/internal/asset"
	"atelier/internal/company"
	"atelier/internal/cursor"
	"atelier/internal/fault"
	"atelier/internal/httpd"
	"atelier/internal/intake"
	"atelier/internal/library"
	"atelier/internal/media"
)

// viewerOf is a call as the library knows it.
func viewerOf(c *call) library.Viewer {
	v := library.Viewer{PersonID: c.caller.PersonID, Manager: map[string]bool{}}
	first := c.account
	for _, a := range append(first.Also, first) {
		v.AccountIDs = append(v.AccountIDs, a.ID)
		v.Manager[a.ID] = a.May(company.ManageTeam)
	}
	return v
}

// atFile says which file of a request a problem is with.
func atFile(err error, index int) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Invalid || len(f.Fields) > 0 {
		return err
	}
	return f.On("files." + strconv.Itoa(index))
}

func (s *Server) createUpload(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	name := c.params.one("name")
	if err := c.params.failed(); err != nil {
		return err
	}
	most := s.Limits.FileBytes
	if r.ContentLength > most+framing {
		w.Header().Set("Connection", "close")
		return s.oversized(most)
	}
	room, err := s.roomFor(r, c.account.ID)
	if err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	s.take(w, r)
	r.Body = http.MaxBytesReader(w, r.Body, most+framing)
	taken, given, err := s.receiveUpload(r, room)
	if err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	if name == "" {
		name = given
	}
	u, err := s.Library.AddUpload(r.Context(), viewerOf(c), c.account.ID, name, taken)
	if err != nil {
		if refused(err) {
			s.Intake.Drop(r.Context(), taken)
		}
		return err
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
func (s *Server) receiveUpload(r *http.Request, room int64) (taken intake.Taken, name string, err error) {
	want := intake.Want{MaxBytes: min(s.Limits.FileBytes, room), Turn: s.turn(r)}
	defer func() {
		if room < s.Limits.FileBytes && fault.Is(err, fault.UploadTooLarge) {
			err = outOfRoom(room)
		}
	}()
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return taken, "", fault.New(fault.UnsupportedMediaType, "Say with Content-Type what you send.")
	}
	if kind != "multipart/form-data" {
		want.Declared = kind
		taken, err = s.takeUpload(r, r.Body, want)
		return taken, "", err
	}
	body := &between{ReadCloser: r.Body}
	r.Body = body
	parts, err := r.MultipartReader()
	if err != nil {
		return taken, "", fault.New(fault.Invalid, "This is no multipart request.").Field("body", "The boundary is missing.").Because(err)
	}
	for range maxParts {
		part, err := body.next(parts)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && part.FormName() != "file" {
			_, err = io.Copy(io.Discard, part) // it is for somebody else
		} else if err == nil {
			want.Declared = part.Header.Get("Content-Type")
			taken, err = s.takeUpload(r, part, want)
			return taken, part.FileName(), err
		}
		if err != nil {
			return taken, "", s.brokenUpload(err)
		}
	}
	return taken, "", fault.New(fault.Invalid, "The request has no file.").Field("file", "This part is required.")
}

// turn says whose files a request brings, and how long they may wait to be read.
func (s *Server) turn(r *http.Request) media.Turn {
	owner := callOf(r).caller.PersonID
	if owner == "" {
		owner = httpd.AddressKey(httpd.RecordOf(r.Context()).Addr)
	}
	return media.Turn{Owner: owner, Wait: s.Limits.DecodeWait}
}

// takeUpload takes the bytes of an upload.
func (s *Server) takeUpload(r *http.Request, body io.Reader, want intake.Want) (intake.Taken, error) {
	from := &heard{Reader: body}
	taken, err := s.Intake.Take(r.Context(), from, want)
	if from.err != nil {
		return taken, s.brokenUpload(from.err)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Invalid && len(f.Fields) == 0 {
		return taken, f.On("file")
	}
	return taken, err
}

// brokenUpload is why an upload could not be read on.
func (s *Server) brokenUpload(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return s.oversized(s.Limits.FileBytes)
	}
	return s.brokenPart(err)
}

func (s *Server) asUpload(u asset.Upload, viewerID string) wire.Upload {
	return wire.Upload{
		ID: u.ID, URL: s.Links.URL(library.OfUpload, u.ID, library.Whole, viewerID),
		ThumbURL: link(s.Links, u.Asset.Thumb != "", library.OfUpload, u.ID, library.Thumb, viewerID),
		Name:     u.Name, Created: moment(u.Created), MimeType: u.Asset.MimeType, Type: wire.Medium(u.Asset.Type), SizeBytes: u.Asset.Size, Sha256: u.Asset.SHA256,
		Width: countOrNull(int64(u.Asset.Width)), Height: countOrNull(int64(u.Asset.Height)), DurationSeconds: playing(u.Asset.Duration),
	}
}

func (s *Server) listUploads(w http.ResponseWriter, r *http.Request) error {
	c := callOf(r)
	pg, err := s.page(c.params, cursor.Scope("uploads", c.caller.PersonID, c.account.ID))
	if err != nil {
		return err
	}
	after, err := pg.place()
	if err != nil {
		return err
	}
	all, err := s.Library.Uploads(r.Context(), viewerOf(c), c.account.ID, after, pg.limit+1)
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
	u, err := s.Library.Upload(r.Context(), viewerOf(c), c.account.ID, r.PathValue("upload_id"))
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
	if err := s.Library.DeleteUpload(r.Context(), viewerOf(c), c.account.ID, r.PathValue("upload_id")); err != nil {
		return err
	}
	return done(w)
}
