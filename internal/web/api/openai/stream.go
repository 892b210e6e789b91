package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/blob"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/generations"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

const (
	// writeGrace is the time within which a client must take what is sent to it.
	writeGrace = time.Minute
	// keepHeader is the header with which a client says that its run goes on
	// after it has left.
	keepHeader = "X-Atelier-Keep-Run"
	// maxPreviewBytes limits the size of a preview in a stream.
	maxPreviewBytes = 8 << 20
)

// streamImages responds with events about a run: previews of its pictures, and
// the pictures.
func (h *Handler) streamImages(w http.ResponseWriter, r *http.Request, id, event string, o imageOptions) error {
	release, err := h.Streams.TakeSlot(rest.PrincipalOf(r).PersonID)
	if err != nil {
		return err
	}
	defer release()
	s := &imageStream{
		handler: h,
		request: r,
		out:     httpd.NewDeadlineWriter(w, h.Now, writeGrace),
		conn:    http.NewResponseController(w),
		event:   event,
		options: o,
	}
	rest.SetStreamHeaders(w.Header())
	rest.VaryByCaller(w.Header())
	w.WriteHeader(http.StatusOK)
	if err := s.conn.Flush(); err != nil {
		return err
	}

	rec, err := h.awaitRun(w, r, id, s.update)
	if err == nil {
		return s.sendPictures(rec)
	}
	if _, ok := errors.AsType[*fault.Error](err); !ok && r.Context().Err() != nil {
		return err
	}
	_, body, _ := describeError(err, httpd.RecordOf(r.Context()).TraceID)
	text, err := json.Marshal(struct {
		Type  string    `json:"type"`
		Error errorBody `json:"error"`
	}{"error", body})
	if err != nil {
		return err
	}
	return s.write("event: error\ndata: " + string(text) + "\n\n")
}

// imageStream sends the events of one run.
type imageStream struct {
	handler *Handler
	request *http.Request
	out     io.Writer
	conn    *http.ResponseController
	event   string
	options imageOptions

	sent    int64     // number of previews
	last    string    // blob key of the last preview
	written time.Time // when something was sent last
}

// write sends text at once.
func (s *imageStream) write(text string) error {
	if _, err := io.WriteString(s.out, text); err != nil {
		return err
	}
	s.written = s.handler.Now()
	return s.conn.Flush()
}

// update sends the newest preview of a run if the client wants it, or a comment
// that keeps the connection open.
func (s *imageStream) update(rec generation.Record) error {
	if rec.Preview != "" && rec.Preview != s.last && s.sent < s.options.previews && !rec.State.IsEnded() {
		return s.sendPreview(rec)
	}
	if s.handler.Now().Sub(s.written) < rest.KeepAliveInterval {
		return nil
	}
	return s.write(": alive\n\n")
}

// sendPreview sends the newest preview of a run. A newer preview may have
// replaced its file; then that one is sent next.
func (s *imageStream) sendPreview(rec generation.Record) error {
	s.last = rec.Preview
	file, _, err := s.handler.Blobs.Open(s.request.Context(), rec.Preview, 0, maxPreviewBytes)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	index := s.sent
	s.sent++
	return s.sendPicture(imageEvent{
		Type:         s.event + ".partial_image",
		CreatedAt:    s.handler.Now().Unix(),
		OutputFormat: formatOf(generations.PreviewType(rec.Preview)),
		Index:        &index,
	}, file)
}

// sendPictures sends the pictures of a run that has succeeded.
func (s *imageStream) sendPictures(rec generation.Record) error {
	for i, o := range rec.Outputs {
		file, err := s.handler.openFile(s.request, o)
		if err != nil {
			return err
		}
		e := imageEvent{
			Type:         s.event + ".completed",
			CreatedAt:    rec.Created.Unix(),
			OutputFormat: formatOf(o.MimeType),
			Size:         sizeOf(o),
		}
		if i == len(rec.Outputs)-1 {
			price := usageOf(rec)
			e.Usage = &price
		}
		err = s.sendPicture(e, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// imageEvent is an event with a picture, without its bytes.
type imageEvent struct {
	Type         string `json:"type"`
	CreatedAt    int64  `json:"created_at"`
	OutputFormat string `json:"output_format,omitempty"`
	Size         string `json:"size,omitempty"`
	Index        *int64 `json:"partial_image_index,omitempty"`
	Usage        *usage `json:"usage,omitempty"`
}

// sendPicture sends an event with the bytes of a picture.
func (s *imageStream) sendPicture(e imageEvent, picture io.Reader) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.out, "event: %s\ndata: %s,\"b64_json\":\"", e.Type, text[:len(text)-1]); err != nil {
		return err
	}
	encoder := base64.NewEncoder(base64.StdEncoding, s.out)
	if _, err := io.Copy(encoder, picture); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	return s.write("\"}\n\n")
}
