package openaitest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"atelier/internal/engine/enginetest"
)

// maxBody is the maximum size of a request body, in bytes.
const maxBody = 64 << 20

// read parses the body of a request, which is JSON or a form.
func read(r *http.Request) (Request, error) {
	q := Request{
		Method: r.Method,
		Path:   r.URL.Path,
		Header: r.Header.Clone(),
		Values: map[string]any{},
		Files:  map[string][]string{},
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return q, err
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	switch kind {
	case "application/json":
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return q, err
		}
		return q, json.Unmarshal(b, &q.Values)
	case "multipart/form-data":
		if err := r.ParseMultipartForm(maxBody); err != nil {
			return q, err
		}
		// The body is read to its end, because the HTTP server notices that
		// the client has disconnected only after that.
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return q, err
		}
		for name, values := range r.MultipartForm.Value {
			q.Values[name] = values[0]
		}
		for name, files := range r.MultipartForm.File {
			for _, f := range files {
				q.Files[name] = append(q.Files[name], f.Filename)
			}
		}
		return q, r.MultipartForm.RemoveAll()
	}
	return q, errors.New("the body is neither JSON nor a form")
}

// text returns a parameter of the request as a string. It returns "" if the
// parameter is missing.
func (q Request) text(name string) string {
	switch v := q.Values[name].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// send writes a file as the response, distorted by the active fault.
func (s *Server) send(w http.ResponseWriter, r *http.Request, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	switch s.now() {
	case enginetest.Breaks:
		enginetest.SendTruncated(w, data)
	case enginetest.Floods:
		enginetest.SendEndless(w, r, string(data))
	case enginetest.Drips:
		enginetest.SendSlowly(w, r, data)
	case enginetest.Fewer:
		w.Header().Set("Content-Length", "0")
	default:
		w.Write(data)
	}
}

// results sends files as the response to a request: embedded if inside is
// true, otherwise as URLs.
func (s *Server) results(w http.ResponseWriter, r *http.Request, inside bool, kind, folder string, files [][]byte) {
	if s.now() == enginetest.Fewer {
		files = nil
	}
	list := []map[string]any{}
	for _, data := range files {
		if inside {
			list = append(list, map[string]any{"b64_json": base64.StdEncoding.EncodeToString(data)})
			continue
		}
		list = append(list, map[string]any{"url": s.keep(folder, kind, data)})
	}
	body, err := json.Marshal(map[string]any{"created": made, "data": list})
	if err != nil {
		panic(err)
	}
	if !inside && s.now() != enginetest.Fewer { // for URLs, the fault applies to the download of files
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
		return
	}
	if s.now() == enginetest.Floods {
		body = []byte(`{"created":1,"data":[{"b64_json":"`)
	}
	if s.now() == enginetest.Fewer {
		answer(w, http.StatusOK, json.RawMessage(body))
		return
	}
	s.send(w, r, "application/json", body)
}

// keep stores a file for download and returns its URL.
func (s *Server) keep(folder, kind string, data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	at := strings.ReplaceAll(folder, "*", fmt.Sprintf("f%d", s.count))
	s.files[at] = file{kind, data}
	if s.o.Elsewhere {
		return s.store.URL + at
	}
	return at
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		s.complain(w, http.StatusNotFound, "not_found", "There is no such file.")
		return
	}
	if s.now() == enginetest.Hangs {
		s.wait(r, time.Hour)
		return
	}
	s.send(w, r, f.kind, f.data)
}

// elsewhere handles requests to the second host, which serves results and
// requires no API key.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.visits = append(s.visits, r.Header.Clone())
	s.mu.Unlock()
	s.getFile(w, r)
}
